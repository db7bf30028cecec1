// libFuzzer target for the parser of CSV text and the features of its cells. Whatever the bytes are, the rows must be
// sound, cutting the text where `end_of_rows` says must not matter, the survey must see as many rows as the parser, and no
// byte outside the text may be touched.
#include <string>
#include <vector>

#include "csv.hpp"
#include "picked.hpp"
#include "promises.hpp"

using namespace rarestream;
using namespace rarestream::fuzz;

namespace {

// A column of each kind, so that cells of any kind meet rules of any kind.
features::TablePlan plan_of(unsigned choice) {
    using namespace features;
    TablePlan plan;
    plan.bits = 10;
    plan.names = false;  // a filter takes megabytes: a new one each time would take longer than parsing
    plan.raw = choice & 1;
    plan.counts = choice & 2;
    plan.characters = choice & 4;
    plan.longest = choice & 8 ? 3 : 1;
    if (choice & 16) plan.missing = {"NA", "-"};
    plan.add_column("y", CATEGORY, Role::label);
    plan.add_column("auto", AUTO, Role::feature);
    plan.add_column("text", TEXT, Role::feature);
    plan.add_column("number", choice & 32 ? unsigned{NUMBER} : NUMBER | CATEGORY, Role::feature);
    plan.add_column("date", DATE, Role::feature);
    plan.add_column("weight", CATEGORY, choice & 64 ? Role::importance : Role::tag);
    plan.add_column("category", CATEGORY, Role::feature);  // such cells are hashed together
    plan.add_column("other", CATEGORY, Role::feature);
    plan.crosses.push_back({"auto*text", murmur3("auto*text", 0), {1, 2}});
    plan.finish();
    return plan;
}

struct Made {
    ParsedRows rows;
    std::int64_t surveyed = 0;
};

Made parsed(const char* text, std::size_t size, const features::TablePlan& plan, std::size_t columns,
            const csv::Options& options) {
    const ExactCopy copy(text, size);
    std::vector<int> numbers;
    for (std::size_t c = 0; c < columns; ++c) numbers.push_back(c < plan.columns.size() ? static_cast<int>(c) : -1);
    Made made;
    features::Worker worker(plan);
    features::TableEncoder encoder(plan, worker, made.rows);
    csv::Parser<features::TableEncoder>(encoder, numbers, options, made.rows).parse(copy.data(), size);
    features::TableSurvey survey(plan.missing);
    for (std::size_t c = 0; c < columns; ++c) numbers[c] = survey.other_column(std::to_string(c));
    ParsedRows ignored;
    csv::Parser<features::TableSurvey>(survey, numbers, options, ignored).parse(copy.data(), size);
    made.surveyed = survey.rows;
    return made;
}

Picked picked_rows(const char* text, std::size_t size, std::size_t columns, bool label, const csv::Options& options) {
    const ExactCopy copy(text, size);
    std::vector<int> roles;
    for (std::size_t c = 0; c < columns; ++c) roles.push_back(c < picking::ROLES ? static_cast<int>(c) : -1);
    return picked({true, label, false}, size, require, [&](picking::Picker& picker, ParsedRows& parsed) {
        csv::Parser<picking::Picker>(picker, roles, options, parsed).parse(copy.data(), size);
    });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const features::TablePlan plan = plan_of(data[0]);
    const std::size_t columns = 1 + data[1] % 9;
    const std::int64_t many = std::int64_t{1} << 40;
    csv::Options options{{",\t;|"[data[1] >> 6], data[1] & 32 ? '\0' : '"'}, false, data[1] & 16 ? 1 : many};
    const char* text = reinterpret_cast<const char*>(data) + 2;
    size -= 2;
    const Made whole = parsed(text, size, plan, columns, options);
    check_sound(whole.rows, options.stop_after, size);
    require(static_cast<std::int64_t>(whole.rows.labels.size()) <= whole.surveyed || options.stop_after == 1,
            "the survey sees every row");
    const bool label = data[0] & 1;
    const Picked picks = picked_rows(text, size, columns, label, options);
    if (options.stop_after == 1) return 0;
    std::ptrdiff_t open;
    const ExactCopy head(text, size * data[0] / 256);
    const std::size_t cut = csv::end_of_rows(head.data(), size * data[0] / 256, options.dialect, open);
    require(cut <= size * data[0] / 256 && (cut == 0 || text[cut - 1] == '\n'), "rows end in a line end");
    require(open == -1 || (open >= static_cast<std::ptrdiff_t>(cut) && text[open] == '"'), "a quote opens after the rows");
    check_cut(whole.rows, parsed(text, cut, plan, columns, options).rows,
              parsed(text + cut, size - cut, plan, columns, options).rows);
    check_picked_cut(picks, picked_rows(text, cut, columns, label, options),
                     picked_rows(text + cut, size - cut, columns, label, options), require);
    return 0;
}
