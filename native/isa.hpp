// Which instruction set the parsers use: chosen at run time, since a wheel must run on every machine. All give the same
// result.
#pragma once

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "platform.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// Of a function: compiled for AVX2, and called only where `has_avx2()`.
#define RARESTREAM_AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt")))

namespace rarestream {

enum class Isa { portable, avx2 };

inline bool has_avx2() { return cpu_has_avx2() && cpu_has_bmi(); }

// The fastest instruction set of this machine, unless RARESTREAM_ISA=portable.
inline Isa best_isa() {
    const char* wanted = std::getenv("RARESTREAM_ISA");
    if (wanted && std::strcmp(wanted, "portable") == 0) return Isa::portable;
    return has_avx2() ? Isa::avx2 : Isa::portable;
}

// By its name; empty: the fastest.
inline Isa isa_named(const std::string& name) {
    if (name.empty()) return best_isa();
    if (name == "portable") return Isa::portable;
    if (name == "avx2" && has_avx2()) return Isa::avx2;
    throw std::invalid_argument("isa must be '', 'portable' or 'avx2' (where the machine has it), got '" + name + "'");
}

}  // namespace rarestream
