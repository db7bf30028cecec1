// libFuzzer target for the parser of labelled text and the n-grams of its words. Whatever the bytes are, the rows must be
// sound, every name must have its hash, cutting the text between lines must not matter, and no byte outside the text may be
// touched.
#include <string>
#include <vector>

#include "features/table.hpp"
#include "promises.hpp"
#include "text.hpp"

using namespace rarestream;
using namespace rarestream::fuzz;

namespace {

features::TablePlan plan_of(unsigned choice) {
    features::TablePlan plan;
    plan.bits = choice & 1 ? 22 : 4;  // with so few slots, all rows have duplicates
    plan.counts = choice & 2;
    plan.characters = choice & 4;
    plan.longest = 1 + (choice >> 3) % 4;
    plan.shortest = choice & 32 ? plan.longest : 1;
    if (choice & 64) plan.missing = {"NA", "-"};
    plan.add_column("label", features::CATEGORY, features::Role::label);
    plan.add_column("text", features::TEXT, features::Role::feature);
    plan.finish();
    return plan;
}

ParsedRows parsed(const char* text, std::size_t size, const features::TablePlan& plan, std::int64_t stop_after) {
    static features::Worker worker(plan);  // its filter takes megabytes; what it remembers is names only
    ParsedRows rows;
    features::TableEncoder encoder(plan, worker, rows);
    text::parse(ExactCopy(text, size).data(), size, encoder, 0, 1, stop_after, rows);
    check_names(rows.names);
    return rows;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const features::TablePlan plan = plan_of(data[0]);
    const std::int64_t stop_after = data[0] & 128 ? 1 : std::int64_t{1} << 40;
    const char* const text = reinterpret_cast<const char*>(data) + 2;
    size -= 2;
    const ParsedRows whole = parsed(text, size, plan, stop_after);
    check_sound(whole, stop_after, size);
    require(whole.width <= std::int64_t{1} << plan.bits, "slots are below 2^bits");
    for (std::int64_t p = 0; p < whole.indptr.back(); ++p) {
        const float value = whole.values[p];
        require(value >= 1 && value == std::floor(value), "a word counts once or more");
    }
    if (stop_after == 1) return 0;
    std::size_t cut = size * data[1] / 256;
    while (cut > 0 && text[cut - 1] != '\n') --cut;
    check_cut(whole, parsed(text, cut, plan, stop_after), parsed(text + cut, size - cut, plan, stop_after));
    return 0;
}
