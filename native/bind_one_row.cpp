// Learning and scoring one row in one call. Whatever is unusual about a row is left to the careful way, that of a block of
// one row: then nothing has changed, and Python is told so by None.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "csr.hpp"
#include "dicts.hpp"
#include "features/name_table.hpp"
#include "gate.hpp"
#include "json.hpp"
#include "json_pairs.hpp"
#include "kernel.hpp"
#include "streaming_sketch.hpp"
#include "table_parser.hpp"

namespace rarestream {

namespace {

// A row of the caller's, checked: indices ascend and are below a limit, values are finite.
class CheckedRow {
    std::vector<std::int32_t> indices_;
    std::vector<float> values_;
    std::vector<std::pair<std::int32_t, float>> scratch_;

public:
    std::int64_t size = 0;
    const std::int32_t* indices() const { return indices_.data(); }
    const float* values() const { return values_.data(); }

    // False: the row is to go the careful way.
    bool read(PyObject* indices, PyObject* values, std::int64_t limit) {
        if (!(read_indices(indices) && read_values(values)) || indices_.size() != values_.size()) return false;
        size = canonicalise_row(indices_.data(), values_.data(), static_cast<std::int64_t>(indices_.size()), scratch_);
        return size == 0 || (indices_[0] >= 0 && indices_[static_cast<std::size_t>(size) - 1] < limit && finite());
    }

private:
    bool finite() const {
        bool all = true;
        for (std::size_t i = 0; i < static_cast<std::size_t>(size); ++i) all &= std::isfinite(values_[i]);
        return all;
    }

    static bool is_sequence(PyObject* items) { return PyList_CheckExact(items) || PyTuple_CheckExact(items); }

    // Calls f(item) for the items of a list or tuple, until it is false.
    template <class Function>
    static bool each(PyObject* items, Function&& f) {
        PyObject* const* const first = PySequence_Fast_ITEMS(items);
        const Py_ssize_t count = PySequence_Fast_GET_SIZE(items);
        for (Py_ssize_t i = 0; i < count; ++i)
            if (!f(first[i])) return false;
        return true;
    }

    // Copies a one-dimensional array of T if it is one; `kinds` are the letters of its type in the buffer protocol.
    template <class T, class To>
    static bool copy_from(const Py_buffer& view, const char* kinds, std::vector<To>& to) {
        const char* const format = view.format ? view.format : "B";
        if (format[0] == '\0' || format[1] != '\0' || !std::strchr(kinds, format[0]) || view.itemsize != sizeof(T))
            return false;
        const T* const from = static_cast<const T*>(view.buf);
        to.assign(static_cast<std::size_t>(view.len) / sizeof(T), To());
        for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<To>(from[i]);
        return true;
    }

    // Calls f(view) with the memory of a contiguous array of one axis.
    template <class Function>
    static bool with_buffer(PyObject* array, Function&& f) {
        Py_buffer view;
        if (PyObject_GetBuffer(array, &view, PyBUF_ND | PyBUF_FORMAT) != 0) {
            PyErr_Clear();
            return false;
        }
        const bool done = view.ndim == 1 && f(view);
        PyBuffer_Release(&view);
        return done;
    }

    bool read_indices(PyObject* given) {
        indices_.clear();
        const auto add = [&](PyObject* item) {
            if (!PyLong_CheckExact(item)) return false;
            int overflow;
            const long long index = PyLong_AsLongLongAndOverflow(item, &overflow);
            if (overflow || index < 0 || index > INT32_MAX) return false;
            indices_.push_back(static_cast<std::int32_t>(index));
            return true;
        };
        if (is_sequence(given)) return each(given, add);
        return with_buffer(given, [&](const Py_buffer& view) {
            if (copy_from<std::int32_t>(view, "il", indices_)) return true;
            std::vector<std::int64_t> wide;
            if (!copy_from<std::int64_t>(view, "lq", wide)) return false;
            indices_.clear();
            for (const std::int64_t index : wide) {
                if (index < 0 || index > INT32_MAX) return false;
                indices_.push_back(static_cast<std::int32_t>(index));
            }
            return true;
        });
    }

    bool read_values(PyObject* given) {
        values_.clear();
        const auto add = [&](PyObject* item) {
            double value;
            if (PyFloat_CheckExact(item)) {
                value = PyFloat_AS_DOUBLE(item);
            } else if (PyLong_CheckExact(item)) {
                int overflow;
                value = static_cast<double>(PyLong_AsLongLongAndOverflow(item, &overflow));
                if (overflow) return false;
            } else {
                return false;
            }
            values_.push_back(static_cast<float>(value));
            return true;
        };
        if (is_sequence(given)) return each(given, add);
        return with_buffer(given, [&](const Py_buffer& view) {
            return copy_from<float>(view, "f", values_) || copy_from<double>(view, "d", values_);
        });
    }
};

// What a model learns and scores with: a state, or weights alone.
class Core {
public:
    virtual ~Core() = default;
    virtual bool learn(const RowsView& row, double& score) = 0;  // false: it was not learned
    virtual void score(const RowsView& row, double& score) = 0;
};

template <class Real>
class StateCore : public Core {
    const nb::object kept_;  // the kernel
    const Kernel& kernel_;
    const TableArray<Real> table_;
    const InOut<double> tally_;
    const OptionalLargest largest_;
    const StateArgument<Real> argument_;
    const Scale scale_;
    RowScratchBuffer<Real> scratch_;

public:
    StateCore(nb::object kernel, TableArray<Real> table, InOut<double> tally, OptionalLargest largest, Scale scale)
        : kept_(kernel), kernel_(nb::cast<const Kernel&>(kernel)), table_(table), tally_(tally), largest_(largest),
          argument_(table_, tally_, largest_, {}), scale_(scale) {
        check_scale(scale, largest_, table_.shape(0));
        kernel_.kernels(argument_.state);  // which refuses the state of another learner
    }

    bool learn(const RowsView& row, double& score) override {
        return kernel_.kernels(argument_.state)
                   .learn(kernel_.settings(), argument_.state, row, scale_, &score, scratch_.scratch(row)) == 1;
    }
    void score(const RowsView& row, double& score) override {
        kernel_.kernels(argument_.state)
            .score(kernel_.settings(), argument_.state, row, scale_, &score, scratch_.scratch(row));
    }
};

template <class Real>
class WeightsCore : public Core {
    const In<Real> weights_;
    const OptionalLargest largest_;
    const Scale scale_;
    RowScratchBuffer<Real> scratch_;

public:
    WeightsCore(In<Real> weights, OptionalLargest largest, Scale scale)
        : weights_(weights), largest_(largest), scale_(scale) {
        check_scale(scale, largest_, weights_.size());
    }

    bool learn(const RowsView&, double&) override { return false; }
    void score(const RowsView& row, double& score) override {
        scorers<Real>().score(weights_.data(), static_cast<std::int64_t>(weights_.size()),
                              largest_ ? largest_->data() : nullptr, row, scale_, &score, scratch_.scratch(row));
    }
};

using OptionalNumbers = std::optional<InOut<double>>;

// The GIL is held during every call, so that no two threads are in here.
class OneRow {
    std::unique_ptr<Core> core_;
    const nb::object kept_;  // what the references below belong to
    Gate& gate_;
    StreamingSketch& progress_;
    const OptionalNumbers calibration_;
    const Calibrate calibrate_ = calibrator_here();
    const std::int64_t limit_;  // indices are below it
    CheckedRow row_;

public:
    OneRow(std::unique_ptr<Core> core, nb::object gate, nb::object progress, OptionalNumbers calibration,
           std::int64_t limit)
        : core_(std::move(core)), kept_(nb::make_tuple(gate, progress)), gate_(nb::cast<Gate&>(gate)),
          progress_(nb::cast<StreamingSketch&>(progress)), calibration_(calibration), limit_(limit) {
        if (calibration_ && calibration_->size() != CALIBRATION_NUMBERS)
            throw std::invalid_argument("one row: a calibration has other numbers");
    }

    // The score that the row had before it was learned. Then the gate is still closed, so that the caller can count the
    // row: it must open it.
    nb::object learn(nb::handle indices, nb::handle values, nb::handle label, nb::handle importance) {
        Label how;
        if (!how.read(label, importance) || !row_.read(indices.ptr(), values.ptr(), limit_)) return nb::none();
        return learned(row_.indices(), row_.values(), row_.size, how);
    }

    // The same of a dict: its features are hashed as those of the parser's plan.
    nb::object learn_named(nb::handle row, nb::handle label, nb::handle importance, TableParser& parser,
                           features::NameTable* names) {
        Label how;
        ParsedRows rows;
        if (!how.read(label, importance) || !encode(row, parser, rows)) return nb::none();
        if (names && rows.names.size()) names->add(rows.names);
        return learned(rows.indices.get(), rows.values.get(), rows.indptr.back(), how);
    }

    nb::object score(nb::handle indices, nb::handle values) {
        if (!row_.read(indices.ptr(), values.ptr(), limit_)) return nb::none();
        return scored(row_.indices(), row_.values(), row_.size);
    }

    nb::object score_named(nb::handle row, TableParser& parser) {
        ParsedRows rows;
        if (!encode(row, parser, rows)) return nb::none();
        return scored(rows.indices.get(), rows.values.get(), rows.indptr.back());
    }

    // Rows as JSON has them, one in a text: an object, or a list of pairs.
    nb::object score_object(const nb::bytes& text, TableParser& parser) {
        ParsedRows rows;
        parser.encode(rows, [&](features::TableEncoder& encoder, ParsedRows& to) {
            json::Parser<features::TableEncoder>(encoder, {1, false}, to, &encoder.json_keys())
                .parse(text.c_str(), text.size());
        });
        return scored(rows);
    }

    nb::object score_pairs(const nb::bytes& text, const json::PairsParser& parser) {
        ParsedRows rows;
        json::Pairs(parser.limits, 1, rows).parse(text.c_str(), text.size());
        return scored(rows);
    }

private:
    struct Label {
        std::int8_t sign = 0;
        double importance = 1;
        bool weighted = false;

        bool read(nb::handle label, nb::handle given) {
            long value = 0;
            if (PyLong_Check(label.ptr())) {  // also a bool
                int overflow;
                value = PyLong_AsLongAndOverflow(label.ptr(), &overflow);
                if (overflow) return false;
            } else if (PyIndex_Check(label.ptr()) && !PyList_Check(label.ptr())) {  // an integer of NumPy
                const nb::object whole = nb::steal(PyNumber_Index(label.ptr()));
                if (!whole.is_valid()) {
                    PyErr_Clear();
                    return false;
                }
                int overflow;
                value = PyLong_AsLongAndOverflow(whole.ptr(), &overflow);
                if (overflow) return false;
            } else {
                return false;
            }
            if (value < -1 || value > 1) return false;
            sign = value == 1 ? 1 : -1;
            if (given.is_none()) return true;
            if (!PyFloat_CheckExact(given.ptr())) return false;
            weighted = true;
            importance = PyFloat_AS_DOUBLE(given.ptr());
            return importance >= SMALLEST_IMPORTANCE && importance <= LARGEST_IMPORTANCE;
        }
    };

    static bool encode(nb::handle row, TableParser& parser, ParsedRows& rows) {
        if (!PyDict_CheckExact(row.ptr())) return false;
        features::TableEncoder encoder(parser.plan, parser.workers.mine(parser.plan), rows);
        dicts::Reader<features::TableEncoder>(encoder, rows, parser.keys).read_one(row.ptr());
        return rows.bad.empty();
    }

    nb::object learned(const std::int32_t* indices, const float* values, std::int64_t size, const Label& how) {
        const std::int64_t indptr[2] = {0, size};
        const RowsView row{indptr, indices, values, &how.sign, how.weighted ? &how.importance : nullptr, 1};
        double score = 0;
        if ((size && indices[size - 1] >= limit_) || !gate_.begin_learning()) return nb::none();
        if (!core_->learn(row, score)) {
            gate_.end_learning();
            return nb::none();
        }
        if (!std::isnan(score)) {  // a row with NaN is not learned
            progress_.add(&how.sign, &score, row.importances, 1);
            if (calibration_) calibrate_(calibration_->data(), &how.sign, &score, row.importances, 1);
        }
        return nb::float_(score);
    }

    nb::object scored(const ParsedRows& rows) {
        if (!rows.bad.empty() || rows.indptr.size() != 2) return nb::none();
        return scored(rows.indices.get(), rows.values.get(), rows.indptr.back());
    }

    nb::object scored(const std::int32_t* indices, const float* values, std::int64_t size) {
        const std::int64_t indptr[2] = {0, size};
        const RowsView row{indptr, indices, values, nullptr, nullptr, 1};
        double score = 0;
        if ((size && indices[size - 1] >= limit_) || !gate_.begin_scoring()) return nb::none();
        core_->score(row, score);
        gate_.end_scoring();
        return std::isfinite(score) ? nb::object(nb::float_(score)) : nb::none();
    }
};

template <class Real>
void of_state(OneRow* made, nb::object kernel, TableArray<Real> table, InOut<double> tally, OptionalLargest largest,
              Scale scale, nb::object gate, nb::object progress, OptionalNumbers calibration, std::int64_t limit) {
    if (limit < 0 || limit > static_cast<std::int64_t>(table.shape(0)))
        throw std::invalid_argument("one row: the limit of indices is beyond the end of the state");
    new (made)
        OneRow(std::make_unique<StateCore<Real>>(kernel, table, tally, largest, scale), gate, progress, calibration, limit);
}

template <class Real>
void of_weights(OneRow* made, In<Real> weights, OptionalLargest largest, Scale scale, nb::object gate, nb::object progress,
                OptionalNumbers calibration, std::int64_t limit) {
    if (limit < 0 || limit > static_cast<std::int64_t>(weights.size()))
        throw std::invalid_argument("one row: the limit of indices is beyond the end of the weights");
    new (made) OneRow(std::make_unique<WeightsCore<Real>>(weights, largest, scale), gate, progress, calibration, limit);
}

}  // namespace

void bind_one_row(nb::module_& m) {
    auto one = nb::class_<OneRow>(m, "OneRow");
    const auto of = [&](auto state, auto weights) {
        one.def("__init__", state, no_convert(), no_convert(), no_convert(), no_convert().none(), enum_arg(), no_convert(),
                no_convert(), no_convert().none(), no_convert());
        one.def("__init__", weights, no_convert(), no_convert().none(), enum_arg(), no_convert(), no_convert(),
                no_convert().none(), no_convert());
    };
    of(&of_state<float>, &of_weights<float>);
    of(&of_state<double>, &of_weights<double>);
    one.def("learn", &OneRow::learn, no_convert(), no_convert().none(), no_convert().none(), no_convert().none())
        .def("learn_named", &OneRow::learn_named, no_convert(), no_convert().none(), no_convert().none(), no_convert(),
             no_convert().none())
        .def("score", &OneRow::score, no_convert(), no_convert().none())
        .def("score_named", &OneRow::score_named, no_convert(), no_convert())
        .def("score_text", &OneRow::score_object, no_convert(), no_convert())
        .def("score_text", &OneRow::score_pairs, no_convert(), no_convert());
}

}  // namespace rarestream
