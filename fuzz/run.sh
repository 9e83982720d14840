#!/usr/bin/env bash
# run.sh SECONDS [TARGET...]: fuzz the targets named, or all, for so many seconds each, all of them at
# once and each in two processes ($PROCESSES: so many; $JOBS: so many at a time), and print what came of it.
#
# It runs next to what tools/fuzz-kit builds: rlx-fuzz, corpus/<target>/, <target>.dict. New
# inputs, logs and inputs that do harm go to $OUT, or to found/ beside this script. Exits with 1 if
# there is one that does.
set -uo pipefail
kit=$(cd "$(dirname "$0")" && pwd)
seconds=${1:?usage: run.sh SECONDS [TARGET...]}
shift
out=${OUT:-$kit/found}
processes=${PROCESSES:-2}
if [ $# -eq 0 ]; then
    # shellcheck disable=SC2046
    set -- $(cd "$kit/corpus" && ls)
fi
jobs=${JOBS:-$(($# * processes))}

export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1

# One process; its number tells it from the others of its target.
fuzz() {
    local target=$1 number=$2 options=()
    local harm=$out/$target/harm new=$out/$target/new
    mkdir -p "$harm" "$new"
    if [ -e "$kit/$target.dict" ]; then
        options+=("-dict=$kit/$target.dict")
    fi
    FUZZ_TARGET=$target "$kit/rlx-fuzz" "-max_total_time=$seconds" -timeout=20 -rss_limit_mb=4096 \
        -max_len=65536 -print_final_stats=1 -reload=30 "-seed=$((number + 1))" \
        "-artifact_prefix=$harm/" "${options[@]}" "$new" "$kit/corpus/$target" \
        >"$out/$target/log-$number" 2>&1
}

mkdir -p "$out"
for number in $(seq $processes); do
    for target in "$@"; do
        while [ "$(jobs -pr | wc -l)" -ge "$jobs" ]; do
            wait -n
        done
        fuzz "$target" "$number" &
    done
done
wait

# Executions: of libFuzzer's last word, or, where a process went down, of its last line of progress.
status=0
echo "$seconds s, $processes processes for each target, on $(nproc) cores"
printf '%-12s %12s %9s %9s %8s\n' target executions coverage inputs harmful
for target in "$@"; do
    executions=0
    for log in "$out/$target"/log-*; do
        runs=$(sed -n 's/^stat::number_of_executed_units: //p; s/^#\([0-9]*\)\t.*/\1/p' "$log" | sort -n | tail -1)
        executions=$((executions + ${runs:-0}))
    done
    coverage=$(sed -n 's/^#.* cov: \([0-9]*\) .*/\1/p' "$out/$target"/log-* | sort -n | tail -1)
    inputs=$(find "$out/$target/new" -type f | wc -l)
    harmful=$(find "$out/$target/harm" -type f | wc -l)
    [ "$harmful" = 0 ] || status=1
    printf '%-12s %12s %9s %9s %8s\n' "$target" "$executions" "${coverage:--}" "$inputs" "$harmful"
done
exit $status
