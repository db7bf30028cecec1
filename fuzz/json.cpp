// libFuzzer target for the parser of JSON lines. Whatever the bytes are, the rows must be sound, cutting the text between
// lines must not matter, nor where the text is in memory, and no byte outside the text may be touched.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "json.hpp"
#include "picked.hpp"
#include "promises.hpp"

using namespace rarestream;

namespace {

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "broken promise: %s\n", what);
    std::abort();
}

features::TablePlan plan_of(unsigned char choice) {
    features::TablePlan plan;
    plan.bits = 18;
    plan.open = choice & 1;
    plan.raw = choice & 2;
    plan.counts = choice & 4;
    plan.characters = choice & 8;
    plan.longest = 2;
    if (choice & 16) plan.missing = {"NA", "5"};
    plan.add_column("a", features::AUTO, features::Role::feature);
    plan.add_column("b", features::CATEGORY | features::NUMBER, features::Role::feature);
    plan.add_column("c", features::TEXT, features::Role::feature);
    plan.add_column("d", features::DATE, features::Role::feature);
    plan.add_column("e", features::CATEGORY, features::Role::feature);
    plan.add_column("n", features::NUMBER, features::Role::feature);
    plan.add_column("y", features::CATEGORY, features::Role::label);
    plan.add_column("w", features::CATEGORY, features::Role::importance);
    plan.add_column("t", features::CATEGORY, features::Role::tag);
    plan.add_column("i", features::CATEGORY, features::Role::ignored);
    if (choice & 128) {  // of requests
        plan.most_features = 5;
        plan.longest_name = 8;
        plan.forgets = true;
    }
    if (choice & 32) plan.crosses.push_back({"a*e", features::murmur3("a*e", 0), {0, 4}});
    plan.finish();
    return plan;
}

ParsedRows parsed(const features::TablePlan& plan, features::Worker& worker, const char* text, std::size_t size,
                  std::int64_t stop_after) {
    // In memory of exactly this size, so that the sanitizer sees any read past the end.
    std::unique_ptr<char[]> copy(new char[size]);
    if (size) std::memcpy(copy.get(), text, size);
    ParsedRows rows;
    features::TableEncoder encoder(plan, worker, rows);
    json::Parser<features::TableEncoder>(encoder, {stop_after, false}, rows).parse(copy.get(), size);
    if (plan.forgets) worker.forget(rows.names);
    return rows;
}

// As requests are parsed: with the keys of earlier texts. What they are must not matter, nor what was parsed before.
ParsedRows parsed_request(const features::TablePlan& plan, features::Worker& worker, const char* text, std::size_t size,
                          std::int64_t stop_after) {
    const fuzz::ExactCopy copy(text, size);
    ParsedRows rows;
    {
        features::TableEncoder encoder(plan, worker, rows);
        json::Parser<features::TableEncoder>(encoder, {stop_after, false}, rows, &encoder.json_keys())
            .parse(copy.data(), size);
    }
    if (plan.forgets) worker.forget(rows.names);
    return rows;
}

fuzz::Picked picked_rows(const char* text, std::size_t size, bool label, std::int64_t stop_after) {
    std::unique_ptr<char[]> copy(new char[size]);
    if (size) std::memcpy(copy.get(), text, size);
    return fuzz::picked({true, label, true}, size, require, [&](picking::Picker& picker, ParsedRows& parsed) {
        json::Parser<picking::Picker>(picker, {stop_after, false}, parsed).parse(copy.get(), size);
    });
}

void check_sound(const ParsedRows& rows, std::size_t size, std::int64_t stop_after) {
    const std::size_t n = rows.labels.size();
    require(rows.indptr.size() == n + 1 && rows.indptr[0] == 0, "a row pointer for every row");
    require(rows.lines.size() == n && rows.columns.size() == n, "a place for every row");
    require(rows.importances.empty() || rows.importances.size() <= n, "importances for rows only");
    require(rows.tag_ends.empty() || rows.tag_ends.size() <= n, "tags for rows only");
    require(static_cast<std::size_t>(rows.lines_read) <= size + 1, "no more lines than bytes");
    require(static_cast<std::int64_t>(rows.bad.size()) <= stop_after, "stops after so many bad rows");
    std::int64_t widest = 0;
    for (std::size_t i = 0; i < n; ++i) {
        require(rows.indptr[i] <= rows.indptr[i + 1], "row pointers never fall");
        require(i == 0 || rows.lines[i - 1] < rows.lines[i], "lines ascend");
        for (std::int64_t p = rows.indptr[i]; p < rows.indptr[i + 1]; ++p) {
            require(rows.indices[p] >= 0 && rows.indices[p] < 1 << 18, "indices in range");
            require(p == rows.indptr[i] || rows.indices[p - 1] < rows.indices[p], "indices ascend");
            require(std::isfinite(rows.values[p]), "finite values");
            widest = std::max<std::int64_t>(widest, std::int64_t{rows.indices[p]} + 1);
        }
        const double label = rows.labels[i];
        require(std::isnan(label) || static_cast<std::size_t>(label) < rows.label_texts.size(), "labels have texts");
    }
    require(widest == rows.width, "the width is the largest index + 1");
    for (const double importance : rows.importances) {
        require(std::isfinite(importance) && importance >= 0, "sound importances");
    }
    for (const BadRow& bad : rows.bad) {
        require(bad.line >= 1 && bad.line <= rows.lines_read && bad.column >= 1, "places");
        require(bad.token.size() <= LONGEST_TOKEN && bad.rule > 0, "rules and short tokens");
    }
    for (std::size_t i = 0; i < rows.names.size(); ++i) {
        const std::string_view name = rows.names.name(i);
        require(first_invalid_utf8(name.data(), name.data() + name.size()) == name.data() + name.size(), "names are UTF-8");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const features::TablePlan plan = plan_of(data[0]);
    const std::int64_t stop_after = data[0] & 64 ? 1 : std::int64_t{1} << 40;
    const char* const text = reinterpret_cast<const char*>(data) + 2;
    size -= 2;
    // Their filters take megabytes; what they remember is names only, and nothing if the plan forgets.
    static features::Worker remembering(plan_of(0)), forgetting(plan_of(128));
    features::Worker& worker = plan.forgets ? forgetting : remembering;
    worker.buckets.clear();
    worker.buckets.resize(plan.columns.size());
    const ParsedRows whole = parsed(plan, worker, text, size, stop_after);
    check_sound(whole, size, stop_after);
    for (std::size_t i = 0; i < whole.labels.size(); ++i) {
        require(whole.indptr[i + 1] - whole.indptr[i] <= plan.most_features, "no more features than the limit");
    }
    if (plan.forgets) {
        worker.json_keys = json::KnownKeys();
        const ParsedRows once = parsed_request(plan, worker, text, size, stop_after);
        const ParsedRows twice = parsed_request(plan, worker, text, size, stop_after);
        require(fuzz::same(whole, once), "keys that are known change nothing");
        require(fuzz::same(once, twice), "what was parsed before changes nothing");
    }

    std::unique_ptr<char[]> copy(new char[size]);
    if (size) std::memcpy(copy.get(), text, size);
    features::TableSurvey survey(plan.missing);
    ParsedRows unused;
    json::Parser<features::TableSurvey>(survey, {INT64_MAX, true}, unused).parse(copy.get(), size);
    require(stop_after == 1 || survey.rows >= static_cast<std::int64_t>(whole.labels.size()), "a survey sees all rows");

    const bool label = data[1] & 1;
    const fuzz::Picked picks = picked_rows(text, size, label, stop_after);
    if (stop_after > 1 && size > 1) {
        std::size_t cut = size * data[1] / 256;
        while (cut > 0 && text[cut - 1] != '\n') --cut;
        const ParsedRows head = parsed(plan, worker, text, cut, stop_after);
        const ParsedRows tail = parsed(plan, worker, text + cut, size - cut, stop_after);
        require(head.labels.size() + tail.labels.size() == whole.labels.size(), "a cut between lines loses no row");
        require(head.bad.size() + tail.bad.size() == whole.bad.size(), "a cut between lines changes no verdict");
        fuzz::check_picked_cut(picks, picked_rows(text, cut, label, stop_after),
                               picked_rows(text + cut, size - cut, label, stop_after), require);
        const std::int64_t first = head.indptr.back(), second = tail.indptr.back();
        require(first + second == whole.indptr.back(), "a cut between lines loses no entry");
        const auto same = [](const auto* a, const auto* b, std::int64_t n) {
            return n == 0 || std::memcmp(a, b, static_cast<std::size_t>(n) * sizeof *a) == 0;
        };
        require(same(head.indices.get(), whole.indices.get(), first) &&
                    same(tail.indices.get(), whole.indices.get() + first, second) &&
                    same(head.values.get(), whole.values.get(), first) &&
                    same(tail.values.get(), whole.values.get() + first, second),
                "a cut between lines changes no entry");
    }
    return 0;
}
