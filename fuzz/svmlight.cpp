// libFuzzer target for the svmlight parser. Whatever the bytes are, all instruction sets must agree, the rows must be
// sound, cutting the text between lines must not matter, nor may comments, and no byte outside the text may be touched.
#include <vector>

#include "promises.hpp"
#include "svmlight.hpp"

using namespace rarestream;
using namespace rarestream::fuzz;
using namespace rarestream::svmlight;

namespace {

ParsedRows parsed(const char* text, std::size_t size, const Options& options, Isa isa) {
    return parse(ExactCopy(text, size).data(), size, options, isa);
}

// The text with every line cut where its comment starts.
std::vector<char> without_comments(const char* text, std::size_t size) {
    std::vector<char> kept;
    bool comment = false;
    for (const char* at = text; at != text + size; ++at) {
        comment = *at != '\n' && (comment || *at == '#');
        if (!comment) kept.push_back(*at);
    }
    return kept;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const Options options{data[0] & 1, (data[0] & 2) != 0, (data[0] & 4) ? 1 : std::int64_t{1} << 40};
    const char* text = reinterpret_cast<const char*>(data) + 1;
    --size;
    const ParsedRows whole = parsed(text, size, options, Isa::portable);
    check_sound(whole, options.stop_after, size);
    for (double label : whole.labels) require(std::isfinite(label) || !options.label_required, "no label is missing");
    if (has_avx2()) require(same(whole, parsed(text, size, options, Isa::avx2)), "AVX2 and portable agree");
    if (has_avx512()) require(same(whole, parsed(text, size, options, Isa::avx512)), "AVX-512 and portable agree");
    const std::vector<char> bare = without_comments(text, size);
    require(same_meaning(whole, parsed(bare.data(), bare.size(), options, best_isa())), "comments mean nothing");
    if (options.stop_after > 1 && size > 1) {
        std::size_t cut = size * data[0] / 256;
        while (cut > 0 && text[cut - 1] != '\n') --cut;
        const ParsedRows head = parsed(text, cut, options, Isa::portable);
        const ParsedRows tail = parsed(text + cut, size - cut, options, best_isa());
        check_cut(whole, head, tail);
    }
    return 0;
}
