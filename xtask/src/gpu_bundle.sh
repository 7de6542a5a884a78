#!/bin/sh
# Says whether Candor's kernels are right on this machine's card, and how fast they are.
# Needs the NVIDIA driver, 25 GB of disk (or SCRATCH set to a folder that has them) and ten minutes.
# Everything that it finds is in results/, the tables in results/tables.md.
set -u
cd "$(dirname "$0")" || exit 1
here=$PWD
scratch=${SCRATCH:-$here/scratch}
results=${RESULTS:-$here/results}
mkdir -p "$scratch" "$results" parts
tar --extract --gzip --file parts.tar.gz --directory parts || exit 1
export CANDOR_GOLDEN="$here/parts/golden"
failed=0

# The name of a step, then its command; what it prints goes into a file of that name.
step() {
    name=$1
    shift
    start=$(date +%s)
    if "$@" >"$results/$name.txt" 2>&1; then word=passed; else word=FAILED; failed=1; fi
    echo "| $name | $word | $(($(date +%s) - start)) s |" | tee -a "$results/tables.md"
}

{
    echo "# On a card"
    echo
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null
    date -u +%Y-%m-%d
    echo
    echo "| step | outcome | time |"
    echo "|---|---|---|"
} >"$results/tables.md"

step conformance timeout 90 parts/test-conformance
step golden timeout 45 parts/test-golden
mkdir -p "$results/instructions"
step instructions timeout 20 parts/record_instructions "$results/instructions"

for shape in llama-8b qwen3moe-30b-a3b; do
    step "make-$shape" timeout 60 parts/random-model "$shape" "$scratch/$shape.gguf"
done
# The first start translates the kernels; the driver keeps what it made.
CUDA_CACHE_PATH="$scratch/cache"
export CUDA_CACHE_PATH
for start in first second; do
    step "start-$start" timeout 25 parts/card --load-only "$scratch/llama-8b.gguf"
done
for shape in llama-8b qwen3moe-30b-a3b; do
    step "verify-$shape" timeout 60 parts/candor verify --json "$scratch/$shape.gguf"
done
step speed timeout 120 parts/card "$scratch/llama-8b.gguf" "$scratch/qwen3moe-30b-a3b.gguf"
{
    echo
    cat "$results/start-first.txt" "$results/start-second.txt"
    cat "$results"/verify-*.txt
    cat "$results/speed.txt"
} >>"$results/tables.md"
rm -rf "$scratch"
cat "$results/tables.md"
exit $failed
