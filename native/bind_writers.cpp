// Python bindings of what writes rows as text.
#include "arrays.hpp"
#include "write_text.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace rarestream {

namespace {

using Text = nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>;

// Checked here, as rows may be those of a Block that somebody has written to.
text::Rows checked(const In<std::int64_t>& indptr, const In<std::int32_t>& indices, const In<float>& values,
                   const In<double>& labels, const In<double>& importances) {
    const auto require = [](bool holds, const char* rule) {
        if (!holds) throw std::invalid_argument(rule);
    };
    require(indptr.size() > 0, "indptr must not be empty");
    const std::size_t count = indptr.size() - 1;
    require(indices.size() == values.size(), "indices and values must have the same length");
    require(labels.size() == count, "there must be a label for each row");
    require(importances.size() == 0 || importances.size() == count, "there must be an importance for each row, or none");
    require(indptr.data()[0] == 0 && indptr.data()[count] == static_cast<std::int64_t>(indices.size()),
            "indptr must start at 0 and end at the number of values");
    for (std::size_t i = 0; i < count; ++i) require(indptr.data()[i] <= indptr.data()[i + 1], "indptr must ascend");
    for (std::size_t k = 0; k < indices.size(); ++k) {
        require(indices.data()[k] >= 0, "indices must not be negative");
        require(std::isfinite(values.data()[k]), "values must be finite");
    }
    return {indptr.data(), indices.data(), values.data(), labels.data(), importances.size() ? importances.data() : nullptr,
            count};
}

Text handed_over(text::Buffer& out) {
    const std::size_t size = out.size();
    char* const data = out.release();
    nb::capsule owner(data, [](void* p) noexcept { std::free(p); });
    return Text(reinterpret_cast<std::uint8_t*>(data), {size}, owner);
}

Text svmlight_text(In<std::int64_t> indptr, In<std::int32_t> indices, In<float> values, In<double> labels,
                   In<double> importances, In<std::int64_t> qids, bool plus) {
    text::Buffer out;
    {
        nb::gil_scoped_release released;
        const text::Rows rows = checked(indptr, indices, values, labels, importances);
        if (qids.size() != 0 && qids.size() != rows.count) throw std::invalid_argument("there must be a qid for each row");
        text::write_svmlight(out, rows, qids.size() ? qids.data() : nullptr, plus);
    }
    return handed_over(out);
}

Text vw_text(text::VwWriter& writer, In<std::int64_t> indptr, In<std::int32_t> indices, In<float> values, In<double> labels,
             In<double> importances, In<std::uint8_t> tags, In<std::int64_t> tag_ends) {
    text::Buffer out;
    {
        nb::gil_scoped_release released;
        const text::Rows rows = checked(indptr, indices, values, labels, importances);
        if (tag_ends.size() != 0 && tag_ends.size() != rows.count)
            throw std::invalid_argument("there must be a tag for each row, or none");
        std::int64_t before = 0;
        for (std::size_t i = 0; i < tag_ends.size(); ++i) {
            const std::int64_t end = tag_ends.data()[i];
            if (end < before || static_cast<std::size_t>(end) > tags.size())
                throw std::invalid_argument("the ends of tags must ascend within their text");
            before = end;
        }
        if (writer.slots())
            for (std::size_t k = 0; k < indices.size(); ++k)
                if (static_cast<std::uint32_t>(indices.data()[k]) >= writer.slots())
                    throw std::invalid_argument("an index is no slot");
        writer.write(out, rows, tag_ends.size() ? reinterpret_cast<const char*>(tags.data()) : nullptr, tag_ends.data());
    }
    return handed_over(out);
}

// Of rows that are so many bytes of a text, those of each part, one after the other; a part below 0 is left out.
nb::list split_text(In<std::uint8_t> text, In<std::int64_t> starts, In<std::int64_t> ends, In<std::int8_t> parts,
                    int count) {
    if (count < 1 || count > 127) throw std::invalid_argument("there must be 1 to 127 parts");
    if (starts.size() != ends.size() || starts.size() != parts.size())
        throw std::invalid_argument("starts, ends and parts must have the same length");
    std::vector<text::Buffer> out(static_cast<std::size_t>(count));
    {
        nb::gil_scoped_release released;
        const std::size_t rows = starts.size();
        for (std::size_t i = 0; i < rows;) {
            const std::int8_t part = parts.data()[i];
            const std::int64_t begin = starts.data()[i];
            std::int64_t end = ends.data()[i];
            if (part >= count || begin < 0 || end < begin || static_cast<std::size_t>(end) > text.size())
                throw std::invalid_argument("a row is not in the text, or of no part");
            // Neighbours of one part are copied at once.
            for (++i; i < rows && parts.data()[i] == part && starts.data()[i] == end && ends.data()[i] >= end &&
                      static_cast<std::size_t>(ends.data()[i]) <= text.size();
                 ++i)
                end = ends.data()[i];
            if (part >= 0)
                out[static_cast<std::size_t>(part)].put(
                    {reinterpret_cast<const char*>(text.data()) + begin, static_cast<std::size_t>(end - begin)});
        }
    }
    nb::list found;
    for (text::Buffer& one : out) found.append(handed_over(one));
    return found;
}

void start(text::VwWriter* made, int bits, int first, const features::NameTable* names) {
    if (bits < 0 || bits > 30) throw std::invalid_argument("bits must be between 0 and 30");
    new (made) text::VwWriter(bits, first, names);
}

}  // namespace

void bind_writers(nb::module_& m) {
    m.def("svmlight_text", &svmlight_text, no_convert("indptr"), no_convert("indices"), no_convert("values"),
          no_convert("labels"), no_convert("importances"), no_convert("qids"), no_convert("plus"));
    m.def("split_text", &split_text, no_convert("text"), no_convert("starts"), no_convert("ends"), no_convert("parts"),
          no_convert("count"));
    nb::class_<text::VwWriter>(m, "VwWriter")
        .def("__init__", &start, nb::kw_only(), no_convert("bits"), no_convert("first"), no_convert("names").none(),
             nb::keep_alive<1, 4>())
        .def("text", &vw_text, no_convert("indptr"), no_convert("indices"), no_convert("values"), no_convert("labels"),
             no_convert("importances"), no_convert("tags"), no_convert("tag_ends"))
        .def_prop_ro("replaced", &text::VwWriter::replaced)
        .def_prop_ro("unknown", &text::VwWriter::unknown)
        .def_prop_ro("zeros", &text::VwWriter::zeros)
        .def_prop_ro("dropped_importances", &text::VwWriter::dropped_importances)
        .def_prop_ro("examples", [](const text::VwWriter& writer) {
            nb::list out;
            for (const auto& [stored, written] : writer.examples()) {
                const auto decoded = [](const std::string& one) {
                    return nb::steal(PyUnicode_DecodeUTF8(one.data(), static_cast<Py_ssize_t>(one.size()), "replace"));
                };
                out.append(nb::make_tuple(decoded(stored), decoded(written)));
            }
            return out;
        });
}

}  // namespace rarestream
