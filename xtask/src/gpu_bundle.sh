#!/bin/sh
# Says whether Candor's kernels are right on this machine's card, and how fast they are.
# Needs the NVIDIA driver, 25 GB of disk (or SCRATCH set to a folder that has them) and ten minutes.
# Everything that it finds is in results/, the table in results/table.md.
#
# With SIMULATED set to a libsimcuda.so (crates/simcuda) all of it runs on that, in small: then the
# script is known to run to its end, and the figures say nothing. The table says that it was so.
set -u
[ -z "${SIMULATED:-}" ] || SIMULATED=$(realpath "$SIMULATED") || exit 1
cd "$(dirname "$0")" || exit 1
here=$PWD
results=${RESULTS:-$here/results}
table=$results/table.md
mkdir -p "${SCRATCH:-$here}" "$results" parts
# A folder of our own: it is removed at the end, and SCRATCH may hold what is somebody's.
scratch=$(mktemp -d "${SCRATCH:-$here}/candor-scratch.XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' INT TERM
tar --extract --gzip --file parts.tar.gz --directory parts || exit 1
export CANDOR_GOLDEN="$here/parts/golden"
# Matrices to measure with: up to a gigabyte at a time.
export TMPDIR="$scratch"
failed=0
# Times are limits on a card; a simulated one takes as long as it takes.
slower=1
scale=
dense=llama-8b
experts=qwen3moe-30b-a3b
if [ -n "${SIMULATED:-}" ]; then
    mkdir -p "$scratch/driver"
    cp "$SIMULATED" "$scratch/driver/libcuda.so.1" || exit 1
    LD_LIBRARY_PATH="$scratch/driver"
    export LD_LIBRARY_PATH
    slower=30
    scale=--small
    dense=llama-tiny
    experts=qwen3moe-tiny
fi

# So many seconds, then a command that takes no longer.
within() {
    limit=$(($1 * slower))
    shift
    timeout "$limit" "$@"
}

# The name of a step, then its command; what it prints goes into a file of that name. Rows of tables
# in it become rows of ours.
step() {
    name=$1
    shift
    start=$(date +%s)
    if "$@" >"$results/$name.txt" 2>&1; then word=passed; else word=FAILED; failed=1; fi
    row "$name" "$word" "$(($(date +%s) - start)) s"
    sed -n -e '/^| what /d' -e '/^|---/d' -e "s/^| /| $name: /p" "$results/$name.txt" >>"$table"
}

row() {
    echo "| $1 | $2 | $3 |" | tee -a "$table"
}

# How long the driver translated kernels: what the first start took longer than the second.
translation() {
    seconds() { sed -n 's/^| .* | \([0-9.]*\) s |.*/\1/p' "$results/start-$1.txt"; }
    took=$(echo "$(seconds first) $(seconds second)" | awk '{ printf "%.1f", $1 - $2 }')
    row "first start: kernels translated" "$took s" "what it took longer than the second"
}

# What the guard said of a model, from the last line of JSON that `candor verify` prints.
verdict() {
    field() { tail -n 1 "$results/verify-$1.txt" | sed -n "s/.*\"$2\":\"\{0,1\}\([^,\"}]*\).*/\1/p"; }
    row "verify-$1: verdict of the guard" "$(field "$1" verdict), $(field "$1" positions) positions" \
        "lowest match $(field "$1" min_cosine), largest divergence $(field "$1" max_kl)"
}

{
    echo "# On a card"
    echo
    if [ -n "${SIMULATED:-}" ]; then
        echo "**The simulated card: no time and no rate below says anything of a real one.**"
    else
        nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null
    fi
    date -u +%Y-%m-%d
    echo
    echo "| what | found | beside |"
    echo "|---|---|---|"
} >"$table"

step conformance within 90 parts/test-conformance
step golden within 45 parts/test-golden
mkdir -p "$results/instructions"
step instructions within 20 parts/record_instructions "$results/instructions"

for shape in "$dense" "$experts"; do
    step "make-$shape" within 60 parts/random-model "$shape" "$scratch/$shape.gguf"
done
# The first start translates the kernels; the driver keeps what it made.
CUDA_CACHE_PATH="$scratch/cache"
export CUDA_CACHE_PATH
for start in first second; do
    step "start-$start" within 25 parts/card $scale --load-only "$scratch/$dense.gguf"
done
translation
for shape in "$dense" "$experts"; do
    step "verify-$shape" within 60 parts/candor verify --json "$scratch/$shape.gguf"
    verdict "$shape"
done
step speed within 150 parts/card $scale "$scratch/$dense.gguf" "$scratch/$experts.gguf"
echo
cat "$table"
exit $failed
