#!/bin/bash
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
sweep=${1:?a file as docs/sweeps.md has it}

head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
# One Ray (2.49 or newer) over all nodes, the sweep on the first of them.  In the end it stops
# every Ray of every node: hence --exclusive.
srun --kill-on-bad-exit=1 ray symmetric-run --address "$head:6379" --min-nodes "$SLURM_NNODES" -- \
    findit sweep "$sweep" --executor ray --gpus 1
