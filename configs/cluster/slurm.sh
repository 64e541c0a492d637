#!/bin/bash
# Not run yet by Slurm: tests/repository/test_cluster_files.py runs it with stand-ins for Slurm and Ray.
# A sweep over the nodes of a Slurm job: sbatch configs/cluster/slurm.sh SWEEP.yaml
# Killed or out of time: the same command goes on.  This package and the images
# must be at the same paths on all nodes, work_dir where the first one of every job finds it.
#SBATCH --job-name=findit
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --gpus-per-node=8
#SBATCH --time=24:00:00

set -euo pipefail
sweep=${1:?a file as docs/how-to/sweeps.md has it}

nodes=${SLURM_JOB_NODELIST:?start it with sbatch}
head=$(scontrol show hostnames "$nodes" | sed -n 1p)  # reads to the end, as head would not
# One Ray (2.49 or newer) over all nodes, the sweep on the first of them.  In the end it stops
# every Ray of every node: hence --exclusive.  Without RAY_ADDRESS the sweep would start its own
# on one node; with an address instead of "auto", Ray would not read its token.
srun --kill-on-bad-exit=1 ray symmetric-run --address "$head:6379" --min-nodes "$SLURM_NNODES" -- \
    env RAY_ADDRESS=auto findit sweep "$sweep" --executor ray --gpus 1
