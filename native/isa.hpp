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
// The same with AVX-512, where `has_avx512()`.
#define RARESTREAM_AVX512 __attribute__((target("avx2,bmi,bmi2,popcnt,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi2")))

namespace rarestream {

enum class Isa { portable, avx2, avx512 };

inline bool has_avx2() { return cpu_has_avx2() && cpu_has_bmi(); }
inline bool has_avx512() { return has_avx2() && cpu_has_avx512() && cpu_has_vbmi2(); }

// Whether an instruction set includes AVX2.
inline bool uses_avx2(Isa isa) { return isa != Isa::portable; }

// The fastest instruction set of this machine, unless RARESTREAM_ISA=portable.
inline Isa best_isa() {
    const char* wanted = std::getenv("RARESTREAM_ISA");
    if (wanted && std::strcmp(wanted, "portable") == 0) return Isa::portable;
    return has_avx512() ? Isa::avx512 : has_avx2() ? Isa::avx2 : Isa::portable;
}

// By its name; empty: the fastest.
inline Isa isa_named(const std::string& name) {
    if (name.empty()) return best_isa();
    if (name == "portable") return Isa::portable;
    if (name == "avx2" && has_avx2()) return Isa::avx2;
    if (name == "avx512" && has_avx512()) return Isa::avx512;
    throw std::invalid_argument("isa must be '', 'portable', 'avx2' or 'avx512' (where the machine has it), got '" + name +
                                "'");
}

}  // namespace rarestream
