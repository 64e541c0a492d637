#!/bin/bash
# Not run yet by Slurm: tests/repository/test_cluster_files.py runs it with stand-ins for Slurm and vLLM.
# A model as vLLM servers on all GPUs of a Slurm job, and a command that asks them:
#   sbatch configs/cluster/slurm_servers.sh Qwen/Qwen3-VL-32B-Instruct Qwen3-VL findit sweep SWEEP.yaml
# The command gets `--base-url @FILE`.  A server stands in the file while it answers, and is started
# again when it dies.  Killed or out of time: the same command goes on.  All nodes share this folder.
#SBATCH --job-name=findit-servers
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --time=24:00:00

set -euo pipefail
export CHECKPOINT=${1:?a checkpoint} NAME=${2:?what results call the model}
shift 2
[ $# -gt 0 ] || { echo "which command asks the servers?" >&2; exit 2; }
export EACH=${GPUS_PER_SERVER:-2} PORT=${PORT:-8000} AGAIN=${SECONDS_BEFORE_AGAIN:-30}
export ADDRESSES=$PWD/servers-${SLURM_JOB_ID:?start it with sbatch}.txt
: > "$ADDRESSES"

# Adds a line to the file, or takes it away, one node at a time; a reader never sees half a file.
in_file() {
    (
        flock 9
        { grep -vxF "$2" "$ADDRESSES" || true; [ "$1" = remove ] || echo "$2"; } > "$ADDRESSES.new"
        mv "$ADDRESSES.new" "$ADDRESSES"
    ) 9> "$ADDRESSES.lock"
}

# One server, again and again: its GPUs, its port.
serve() {
    local url=http://$(hostname -f):$2/v1 server=
    trap 'kill $server $(jobs -p) 2> /dev/null; wait; in_file remove "$url"; exit' TERM
    while true; do
        CUDA_VISIBLE_DEVICES=$1 vllm serve "$CHECKPOINT" --served-model-name "$NAME" \
            --host 0.0.0.0 --port "$2" --tensor-parallel-size "$EACH" --generation-config vllm &
        server=$!
        until curl -sf --noproxy '*' "http://127.0.0.1:$2/v1/models" > /dev/null; do
            kill -0 $server 2> /dev/null || break
            sleep 1
        done
        if kill -0 $server 2> /dev/null; then in_file add "$url"; fi
        wait $server || true
        in_file remove "$url"
        sleep "$AGAIN" &
        wait $!
    done
}

# All servers of a node.
serve_node() {
    local gpus at port=$PORT
    IFS=, read -ra gpus <<< "${CUDA_VISIBLE_DEVICES:-$(seq -s, 0 $((SLURM_GPUS_ON_NODE - 1)))}"
    trap 'kill $(jobs -p) 2> /dev/null; wait; exit' TERM
    for ((at = 0; at + EACH <= ${#gpus[@]}; at += EACH)); do
        serve "$(IFS=,; echo "${gpus[*]:at:EACH}")" "$port" > "servers-$SLURM_JOB_ID-$(hostname)-$port.log" 2>&1 &
        port=$((port + 1))
    done
    wait
}

export -f in_file serve serve_node
srun bash -c serve_node &
servers=$!
# srun hands the signal on.
trap 'kill $servers 2> /dev/null || true; wait $servers || true' EXIT
"$@" --base-url "@$ADDRESSES"
