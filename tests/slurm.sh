#!/usr/bin/env bash
# A study on a real Slurm, against the same study on this machine: jobs are cancelled and requeued on the way, and the reports must be the
# same bytes. Needs an xrun, and a cluster in reach of sbatch whose nodes see the folder; without sbatch it says so and does nothing.
# usage: tests/slurm.sh XRUN STUDY.exp FOLDER [PROFILE]
set -euo pipefail
command -v sbatch >/dev/null || { echo "skipped: no sbatch"; exit 0; }
xrun=$(realpath "$1") folder=$(realpath -m "$3") cluster=(${4:+--cluster "$(realpath "$4")"})
mkdir -p "$folder"
cp "$2" "$folder/study.exp"
cd "$folder"
submit() { "$xrun" run study.exp --store remote --on slurm "${cluster[@]}"; }
# Ids of this study's tasks in a state, arrays as ID_TASK.
tasks() { squeue --me -h -r -t "$1" -o '%j|%i' | sed -n 's/.*\.job-[^|]*|//p'; }
done_nodes() { find remote/nodes -mindepth 1 -maxdepth 1 2>/dev/null | wc -l; }
wait_for() { # seconds, command
  local end=$((SECONDS + $1)); shift
  until "$@"; do [ $SECONDS -lt $end ] || { echo "waited too long for: $*" >&2; exit 1; }; sleep 0.5; done
}
idle() { [ -z "$(tasks PENDING,RUNNING,COMPLETING,SUSPENDED)" ]; }
# A task that runs, once training is under way.
busy() { compgen -G 'remote/work/*/*/metrics.jsonl' >/dev/null && id=$(tasks RUNNING | tail -1) && [ -n "$id" ]; }

[ -d here ] || "$xrun" run study.exp --store here --quiet
submit
wait_for 600 busy
scancel "$id"
echo "cancelled $id after $(done_nodes) nodes"
sleep 3
"$xrun" status study.exp --store remote
submit
wait_for 600 busy
scontrol requeue "$id"
echo "requeued $id after $(done_nodes) nodes"
wait_for 3600 idle
submit
wait_for 3600 idle
echo "nodes of the cluster that took part: $(grep -ho '^on [^ ]*' remote/slurm/*/*.log | sort | uniq -c | tr '\n' ' ')"
"$xrun" report study.exp --store here >here.md
"$xrun" report study.exp --store remote >remote.md
cmp here.md remote.md
diff -r here/nodes remote/nodes
echo "same report, same nodes: $(done_nodes)"
