// What is done to rows from outside, for the types that are accepted. Included by survey_portable.cpp and survey_avx2.cpp,
// which define RARESTREAM_ISA.
#pragma once

#include "copy_rows.hpp"
#include "dense_rows.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

#define RARESTREAM_COPY(Index, Value)                                                                          \
    template CopyResult copy_rows(const std::int64_t*, std::int64_t, const Index*, const Value*, std::int64_t, \
                                  std::int32_t*, float*);
RARESTREAM_COPY(std::int32_t, float)
RARESTREAM_COPY(std::int32_t, double)
RARESTREAM_COPY(std::int64_t, float)
RARESTREAM_COPY(std::int64_t, double)
#undef RARESTREAM_COPY

template std::int64_t drop_zeros(const float*, std::int64_t, std::int32_t*, float*, bool&);
template std::int64_t drop_zeros(const double*, std::int64_t, std::int32_t*, float*, bool&);

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
