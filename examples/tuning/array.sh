#!/usr/bin/env bash
# Tunes a list of shapes as a Slurm array job, and merges what its tasks have found.
#
#     sbatch --array=0-3 --gpus-per-task=1 examples/tuning/array.sh model.tc model.shapes OUT [flags of tensorc tune]
#     examples/tuning/array.sh --merge OUT          # when all tasks have ended
#
# Each task tunes its part of the list (tensorc reads Slurm's array variables) into a cache of its own, so that no file
# is shared over a network; OUT/kernels.tcc then has the best of all. A task that is killed and queued again goes on
# where it was.
set -euo pipefail
tensorc=${TENSORC:-tensorc}
if [ "$1" = --merge ]; then
  exec "$tensorc" cache merge "$2/kernels.tcc" "$2"/task-*.tcc
fi
program=$1 shapes=$2 out=$3
shift 3
mkdir -p "$out"
task=${SLURM_ARRAY_TASK_ID:-0}
exec "$tensorc" tune "$program" --shapes="$shapes" --cache="$out/task-$task.tcc" --history="$out/task-$task.csv" "$@"
