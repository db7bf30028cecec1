// libFuzzer target for the parser of Vowpal Wabbit text. Whatever the bytes are, the two instruction sets must agree, the
// rows must be sound, every name must have the hash that the plain hash function gives it, cutting the text between lines
// must not matter, and no byte outside the text may be touched.
#include <string_view>

#include "promises.hpp"
#include "vw.hpp"

using namespace rarestream;
using namespace rarestream::fuzz;

namespace {

ParsedRows parsed(const char* text, std::size_t size, const vw::Options& options, Isa isa,
                  features::NameFilter* filter = nullptr) {
    ParsedRows rows;
    vw::Parser(options, isa, filter, rows).parse(ExactCopy(text, size).data(), size);
    return rows;
}

void check_names(const ParsedRows& rows) {
    for (std::size_t i = 0; i < rows.names.size(); ++i) {
        const std::string_view name = rows.names.name(i);
        const std::size_t end = name.find('^');
        require(end != std::string_view::npos, "a name has a namespace");
        if (name.find(':') != std::string_view::npos || name.size() > features::LONGEST_NAME) continue;
        if (name.find('^', end + 1) != std::string_view::npos) continue;  // which of them ends the namespace?
        const std::uint32_t seed = features::murmur3(name.substr(0, end), 0);
        require(rows.names.hashes[i] == features::murmur3(name.substr(end + 1), seed), "a name has its hash");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const vw::Options options{1 + (data[0] >> 3) % 30, (data[0] & 4) ? 1 : std::int64_t{1} << 40};
    const char* text = reinterpret_cast<const char*>(data) + 1;
    --size;
    static features::NameFilter filter;  // megabytes: a new one each time would take longer than parsing
    check_names(parsed(text, size, options, best_isa(), &filter));
    const ParsedRows whole = parsed(text, size, options, Isa::portable);
    check_sound(whole, options.stop_after, size);
    require(whole.width <= std::int64_t{1} << options.bits, "slots are below 2^bits");
    if (has_avx2()) {
        require(same(whole, parsed(text, size, options, Isa::avx2)), "AVX2 and portable agree");
    }
    if (options.stop_after > 1 && size > 1) {
        std::size_t cut = size * data[0] / 256;
        while (cut > 0 && text[cut - 1] != '\n') --cut;
        check_cut(whole, parsed(text, cut, options, Isa::portable), parsed(text + cut, size - cut, options, best_isa()));
    }
    return 0;
}
