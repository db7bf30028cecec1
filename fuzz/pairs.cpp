// libFuzzer target for the parser of JSON pairs. Whatever the bytes are, the rows must be sound and within the limits,
// cutting the text between lines must not matter, and no byte outside the text may be touched.
#include <cstdint>
#include <string>

#include "json_pairs.hpp"
#include "promises.hpp"

using namespace rarestream;
using fuzz::require;

namespace {

ParsedRows parsed(const json::PairLimits& limits, const char* text, std::size_t size, std::int64_t stop_after) {
    const fuzz::ExactCopy copy(text, size);
    ParsedRows rows;
    json::Pairs(limits, stop_after, rows).parse(copy.data(), size);
    return rows;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    json::PairLimits limits;
    if (data[0] & 1) limits.features = 1000;
    if (data[0] & 2) limits.nonzeros = 3;
    const std::int64_t stop_after = data[0] & 64 ? 1 : std::int64_t{1} << 40;
    const char* const text = reinterpret_cast<const char*>(data) + 2;
    size -= 2;
    const ParsedRows whole = parsed(limits, text, size, stop_after);
    fuzz::check_sound(whole, stop_after, size);
    require(whole.width <= limits.features, "indices below the limit");
    for (std::size_t i = 0; i + 1 < whole.indptr.size(); ++i) {
        require(whole.indptr[i + 1] - whole.indptr[i] <= limits.nonzeros, "no more entries than the limit");
    }
    for (const BadRow& bad : whole.bad) {
        require(bad.token.size() <= LONGEST_TOKEN && bad.rule >= 1 && bad.rule <= 12, "rules and short tokens");
    }
    if (stop_after > 1) {
        std::size_t cut = size * data[1] / 256;
        while (cut > 0 && text[cut - 1] != '\n') --cut;
        fuzz::check_cut(whole, parsed(limits, text, cut, stop_after), parsed(limits, text + cut, size - cut, stop_after));
    }
    return 0;
}
