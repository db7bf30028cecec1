// libFuzzer target for the svmlight parser. Whatever the bytes are, the two instruction sets must agree, the rows must be
// sound, cutting the text between lines must not matter, nor may comments, and no byte outside the text may be touched.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "svmlight.hpp"

using namespace rarestream::svmlight;

namespace {

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "broken promise: %s\n", what);
    std::abort();
}

template <class T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

bool same_bad(const std::vector<BadRow>& a, const std::vector<BadRow>& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i].line != b[i].line || a[i].column != b[i].column || a[i].rule != b[i].rule || a[i].token != b[i].token) {
            return false;
        }
    }
    return true;
}

bool same(const ParsedRows& a, const ParsedRows& b) {
    const std::size_t nonzeros = static_cast<std::size_t>(a.indptr.back());
    return a.indptr == b.indptr && same_bytes(a.labels, b.labels) && a.lines == b.lines && a.columns == b.columns &&
           same_bytes(a.importances, b.importances) && a.tags == b.tags && a.width == b.width &&
           a.lines_read == b.lines_read && same_bad(a.bad, b.bad) &&
           std::memcmp(a.indices.get(), b.indices.get(), nonzeros * sizeof(std::int32_t)) == 0 &&
           std::memcmp(a.values.get(), b.values.get(), nonzeros * sizeof(float)) == 0;
}

void check_sound(const ParsedRows& rows, const Options& options, std::size_t size) {
    const std::size_t n = rows.labels.size();
    require(rows.indptr.size() == n + 1 && rows.indptr[0] == 0, "a row pointer for every row");
    require(rows.lines.size() == n && rows.columns.size() == n, "a place for every row");
    require(rows.importances.empty() || rows.importances.size() == n, "importances for all rows or none");
    require(rows.tags.empty() || rows.tags.size() == n, "tags for all rows or none");
    require(static_cast<std::size_t>(rows.lines_read) <= size + 1, "no more lines than bytes");
    require(static_cast<std::int64_t>(rows.bad.size()) <= options.stop_after, "stops after so many bad rows");
    std::int64_t widest = 0;
    for (std::size_t i = 0; i < n; ++i) {
        require(rows.indptr[i] <= rows.indptr[i + 1], "row pointers never fall");
        require(i == 0 || rows.lines[i - 1] < rows.lines[i], "lines ascend");
        require(std::isfinite(rows.labels[i]) || (!options.label_required && std::isnan(rows.labels[i])), "finite labels");
        for (std::int64_t p = rows.indptr[i]; p < rows.indptr[i + 1]; ++p) {
            require(rows.indices[p] >= 0 && rows.indices[p] < INT32_MAX, "indices in range");
            require(p == rows.indptr[i] || rows.indices[p - 1] < rows.indices[p], "indices ascend");
            require(std::isfinite(rows.values[p]), "finite values");
            widest = std::max<std::int64_t>(widest, std::int64_t{rows.indices[p]} + 1);
        }
    }
    require(widest == rows.width, "the width is the largest index + 1");
    for (double importance : rows.importances) require(std::isfinite(importance) && importance >= 0, "sound importances");
    for (std::int64_t tag : rows.tags) require(tag >= -1, "sound tags");
    for (const BadRow& bad : rows.bad) require(bad.line >= 1 && bad.line <= rows.lines_read && bad.column >= 1, "places");
}

ParsedRows parsed(const char* text, std::size_t size, const Options& options, Isa isa) {
    // In memory of exactly this size, so that the sanitizer sees any read past the end.
    std::unique_ptr<char[]> copy(new char[size]);
    if (size) std::memcpy(copy.get(), text, size);
    return parse(copy.get(), size, options, isa);
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

// The same rows from the same places, and the same lines refused; what a message shows may differ.
bool same_meaning(const ParsedRows& a, const ParsedRows& b) {
    if (a.bad.size() != b.bad.size()) return false;
    for (std::size_t i = 0; i < a.bad.size(); ++i) {
        if (a.bad[i].line != b.bad[i].line || a.bad[i].column != b.bad[i].column || a.bad[i].rule != b.bad[i].rule) {
            return false;
        }
    }
    const std::size_t nonzeros = static_cast<std::size_t>(a.indptr.back());
    return a.indptr == b.indptr && same_bytes(a.labels, b.labels) && a.lines == b.lines && a.columns == b.columns &&
           same_bytes(a.importances, b.importances) && a.tags == b.tags && a.width == b.width &&
           std::memcmp(a.indices.get(), b.indices.get(), nonzeros * sizeof(std::int32_t)) == 0 &&
           std::memcmp(a.values.get(), b.values.get(), nonzeros * sizeof(float)) == 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const Options options{data[0] & 1, (data[0] & 2) != 0, (data[0] & 4) ? 1 : std::int64_t{1} << 40};
    const char* text = reinterpret_cast<const char*>(data) + 1;
    --size;
    const ParsedRows whole = parsed(text, size, options, Isa::portable);
    check_sound(whole, options, size);
    if (has_avx2()) require(same(whole, parsed(text, size, options, Isa::avx2)), "AVX2 and portable agree");
    const std::vector<char> bare = without_comments(text, size);
    require(same_meaning(whole, parsed(bare.data(), bare.size(), options, best_isa())), "comments mean nothing");
    if (options.stop_after > 1 && size > 1) {
        std::size_t cut = size * data[0] / 256;
        while (cut > 0 && text[cut - 1] != '\n') --cut;
        const ParsedRows head = parsed(text, cut, options, Isa::portable);
        const ParsedRows tail = parsed(text + cut, size - cut, options, best_isa());
        require(head.labels.size() + tail.labels.size() == whole.labels.size(), "a cut between lines loses no row");
        require(head.bad.size() + tail.bad.size() == whole.bad.size(), "a cut between lines changes no verdict");
        require(head.indptr.back() + tail.indptr.back() == whole.indptr.back(), "a cut between lines loses no entry");
    }
    return 0;
}
