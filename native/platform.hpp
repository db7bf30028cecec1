// What differs between compilers and systems, in one place. The sources need GCC or Clang, for vectors as a language
// extension; on Windows that is clang-cl, with the headers and libraries of Visual Studio.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(_MSC_VER) && defined(__x86_64__)
#include <intrin.h>
#elif defined(RARESTREAM_CPUID) && defined(__x86_64__)
#include <cpuid.h>
#endif

#if !defined(__GNUC__) && !defined(__clang__)
#error "rarestream is compiled with GCC or Clang; on Windows with clang-cl: cmake -T ClangCL"
#endif

// The row loops are written as small functions and lambdas. A call that is not inlined would pass vectors through memory.
#define RARESTREAM_ALWAYS_INLINE inline __attribute__((always_inline))
#define RARESTREAM_INLINE_LAMBDA __attribute__((always_inline))

namespace rarestream {

// What the processor has and the system lets programs use. What we need of AVX-512 came in one generation.
#if defined(RARESTREAM_CPUID) && defined(__x86_64__)
// Zig does not have the library that __builtin_cpu_supports needs. `features` are bits of EBX of leaf 7, `registers` bits
// of XCR0: the registers that the system saves. Virtual machines are slow to answer: each is asked once.
inline bool cpu_has(unsigned features, unsigned registers) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return false;
    const bool system_saves_registers = c >> 27 & 1;
    if (!system_saves_registers) return false;
    unsigned saved, upper;
    __asm__ volatile("xgetbv" : "=a"(saved), "=d"(upper) : "c"(0));
    if ((saved & registers) != registers || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
    return (b & features) == features;
}
inline bool cpu_has_avx2() {
    static const bool has = cpu_has(1u << 5, 0x6);
    return has;
}
inline bool cpu_has_bmi() {
    static const bool has = cpu_has(1u << 3 | 1u << 8, 0);
    return has;
}
inline bool cpu_has_avx512() {
    static const bool has = cpu_has(1u << 16 | 1u << 17 | 1u << 31, 0xE6);
    return has;
}
inline bool cpu_has_vbmi2() {  // and AVX-512 for bytes
    unsigned a, b, c, d;
    static const bool has = cpu_has(1u << 16 | 1u << 30, 0xE6) && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c >> 6 & 1);
    return has;
}
#elif defined(_MSC_VER) && defined(__x86_64__)
// Visual Studio does not link the library that __builtin_cpu_supports needs. `features` are bits of EBX of leaf 7,
// `registers` bits of XCR0: the registers that the system saves.
__attribute__((target("xsave"))) inline bool cpu_has(unsigned features, unsigned long long registers) {
    int found[4];
    __cpuid(found, 0);
    if (found[0] < 7) return false;
    __cpuid(found, 1);
    const bool system_saves_registers = found[2] >> 27 & 1;
    if (!system_saves_registers || (_xgetbv(0) & registers) != registers) return false;
    __cpuidex(found, 7, 0);
    return (static_cast<unsigned>(found[1]) & features) == features;
}
inline bool cpu_has_avx2() { return cpu_has(1u << 5, 0x6); }
inline bool cpu_has_bmi() { return cpu_has(1u << 3 | 1u << 8, 0); }
inline bool cpu_has_avx512() { return cpu_has(1u << 16 | 1u << 17 | 1u << 31, 0xE6); }
inline bool cpu_has_vbmi2() {  // and AVX-512 for bytes
    int found[4];
    __cpuidex(found, 7, 0);
    return cpu_has(1u << 16 | 1u << 30, 0xE6) && (found[2] >> 6 & 1);
}
#elif defined(__x86_64__)
inline bool cpu_has_avx2() { return __builtin_cpu_supports("avx2"); }
inline bool cpu_has_bmi() { return __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2"); }
inline bool cpu_has_avx512() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
inline bool cpu_has_vbmi2() {  // and AVX-512 for bytes
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi2");
}
#else
inline bool cpu_has_avx2() { return false; }
inline bool cpu_has_bmi() { return false; }
inline bool cpu_has_avx512() { return false; }
inline bool cpu_has_vbmi2() { return false; }
#endif

// Asks the system for pages of 2 MiB in large memory: they are faster to fill and to read. It is only a hint.
inline void prefer_huge_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#ifdef MADV_HUGEPAGE
    constexpr std::uintptr_t page = 4096;
    const std::uintptr_t begin = (reinterpret_cast<std::uintptr_t>(memory) + page - 1) / page * page;
    const std::uintptr_t end = (reinterpret_cast<std::uintptr_t>(memory) + bytes) / page * page;
    if (end > begin) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

}  // namespace rarestream
