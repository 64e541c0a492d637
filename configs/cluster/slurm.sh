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

nodes=${SLURM_JOB_NODELIST:?start it with sbatch}
address=$(scontrol show hostnames "$nodes" | head -n 1):6379
# One Ray (2.49 or newer) over all nodes, the sweep on the first of them.  In the end it stops
# every Ray of every node: hence --exclusive.  It does not tell the sweep where it is.
srun --kill-on-bad-exit=1 ray symmetric-run --address "$address" --min-nodes "$SLURM_NNODES" -- \
    env RAY_ADDRESS="$address" findit sweep "$sweep" --executor ray --gpus 1
