// Python bindings of the published methods, for `rarestream reproduce`.
#include "arrays.hpp"
#include "published/methods.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace rarestream {

namespace {

// One published method that learns a stream of known length.
class PublishedMethod {
    published::Shape shape_;
    std::unique_ptr<published::Method> method_;
    std::int64_t learned_ = 0;

public:
    PublishedMethod(const std::string& name, const std::vector<double>& settings, std::int64_t features, std::int64_t rows)
        : shape_{features, rows} {
        if (features < 1 || rows < 1) throw std::invalid_argument("published: features and rows must be >= 1");
        method_ = published::make_method(name, shape_, settings);
    }

    // Writes the score of each row before it was learned.
    void learn(In<std::int64_t> indptr, In<std::int32_t> indices, In<double> values, In<std::int8_t> labels,
               InOut<double> scores) {
        const std::int64_t n = static_cast<std::int64_t>(labels.size()), *start = indptr.data();
        if (indptr.size() != labels.size() + 1 || scores.size() != labels.size() || indices.size() != values.size() ||
            learned_ + n > shape_.n)
            throw std::invalid_argument("published: arrays that do not belong together, or more rows than were told");
        const std::int64_t entries = static_cast<std::int64_t>(indices.size());
        for (std::int64_t i = 0; i < n; ++i)
            if (start[i] < 0 || start[i + 1] < start[i] || start[i + 1] > entries)
                throw std::invalid_argument("published: indptr must ascend and stay within the entries");
        nb::gil_scoped_release released;
        for (std::int64_t p = start[0]; p < start[n]; ++p)
            if (indices.data()[p] < 0 || indices.data()[p] >= shape_.d)
                throw std::invalid_argument("published: a feature index is negative or not below `features`");
        learned_ += n;
        for (std::int64_t i = 0; i < n; ++i) {
            const published::Row x{indices.data() + start[i], values.data() + start[i], start[i + 1] - start[i]};
            scores.data()[i] = method_->step(x, labels.data()[i] > 0);
        }
    }

    nb::ndarray<nb::numpy, double, nb::ndim<1>> weights() const {
        const std::size_t d = static_cast<std::size_t>(shape_.d);
        std::unique_ptr<double[]> out(new double[d]);
        {
            nb::gil_scoped_release released;
            method_->write_weights(out.get());
        }
        return owned(std::move(out), d);
    }
};

}  // namespace

void bind_published(nb::module_& m) {
    nb::class_<PublishedMethod>(m, "PublishedMethod")
        .def(nb::init<const std::string&, const std::vector<double>&, std::int64_t, std::int64_t>(), no_convert(),
             no_convert(), no_convert(), no_convert())
        .def("learn", &PublishedMethod::learn, no_convert(), no_convert(), no_convert(), no_convert(), no_convert())
        .def("weights", &PublishedMethod::weights);
}

}  // namespace rarestream
