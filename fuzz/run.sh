#!/usr/bin/env bash
# Fuzzes a parser: fuzz/run.sh NAME [SECONDS] [BUILD FOLDER], where fuzz/NAME.cpp is its target, fuzz/NAME.dict words of its
# format and fuzz/seeds/NAME texts to start from. One core. What it finds is written to the build folder.
set -euo pipefail
cd "$(dirname "$0")/.."
name=${1:?which parser? fuzz/run.sh NAME [SECONDS] [BUILD FOLDER]}
seconds=${2:-300}
build=${3:-build/fuzz/$name}
mkdir -p "$build/corpus"
flags=(-std=c++17 -g -O1 -Inative -Ifuzz -fno-omit-frame-pointer -fno-sanitize-recover=all -Wno-psabi)

fuzzes() { # whether this compiler has libFuzzer and its sanitizers
    command -v "$1" >/dev/null && echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
        "$1" -x c++ - -fsanitize=fuzzer,address,undefined -o "$build/probe" 2>/dev/null
}

if ! fuzzes clang++ && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    flock fuzz/run.sh apt-get install -y -q clang >/dev/null 2>&1 || true  # targets may be run side by side
fi
if fuzzes clang++; then
    clang++ "${flags[@]}" -fsanitize=fuzzer,address,undefined "fuzz/$name.cpp" -o "$build/$name"
    exec "$build/$name" -max_total_time="$seconds" -max_len=4096 -dict="fuzz/$name.dict" -print_final_stats=1 \
        -artifact_prefix="$build/" "$build/corpus" "fuzz/seeds/$name"
fi
echo "fuzz: no clang++ with libFuzzer here; replaying the seeds and random mutations of them with g++ instead."
g++ "${flags[@]}" -fsanitize=address,undefined "fuzz/$name.cpp" fuzz/replay.cpp -o "$build/replay"
exec "$build/replay" "$seconds" "fuzz/seeds/$name"
