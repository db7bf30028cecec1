#include <algorithm>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "csr.hpp"
#include "gate.hpp"
#include "kernels.hpp"

namespace rarestream {

namespace portable {
LearnerKernels find_kernels(const char* name);
ScoreWeights<float> score_weights_f32();
ScoreWeights<double> score_weights_f64();
}  // namespace portable

#ifdef RARESTREAM_HAS_AVX2
namespace avx2 {
LearnerKernels find_kernels(const char* name);
ScoreWeights<float> score_weights_f32();
ScoreWeights<double> score_weights_f64();
}  // namespace avx2
#endif

namespace {

bool avx2_available() {
#ifdef RARESTREAM_HAS_AVX2
    return __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

bool avx2_wanted() {
    const char* chosen = std::getenv("RARESTREAM_ISA");
    return avx2_available() && !(chosen && std::string(chosen) == "portable");
}

bool use_avx2 = avx2_wanted();

std::string isa() { return use_avx2 ? "avx2" : "portable"; }

void set_isa(const std::string& name) {
    if (name != "portable" && !(name == "avx2" && avx2_available()))
        throw std::invalid_argument("this machine has no instruction set called '" + name + "'");
    use_avx2 = name == "avx2";
}

template <class Real>
using Pairs = nb::ndarray<Real, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;

// Room for the longest of the rows, 64 bytes aligned.
template <class Real>
class RowMemory {
    std::vector<Real> reals_;

public:
    Scratch<Real> scratch{};

    explicit RowMemory(const Rows& rows) {
        std::int64_t longest = 0;
        for (std::int64_t i = 0; i < rows.size; ++i)
            longest = std::max(longest, rows.indptr[i + 1] - rows.indptr[i]);
        const std::size_t room = (static_cast<std::size_t>(longest) / 16 + 1) * 16;
        reals_.resize(6 * room + 16);
        auto address = reinterpret_cast<std::uintptr_t>(reals_.data());
        Real* base = reinterpret_cast<Real*>((address + 63) / 64 * 64);
        scratch = {base, base + room, base + 2 * room, base + 3 * room, base + 4 * room,
                   base + 5 * room};
    }
};

using MaybeLargest = std::optional<InOut<float>>;

Rows borrow(In<std::int64_t> indptr, In<std::int32_t> indices, In<float> values) {
    if (indptr.size() < 1 || indices.size() != values.size() ||
        indptr.data()[indptr.size() - 1] != static_cast<std::int64_t>(indices.size()))
        throw std::invalid_argument("rows: indptr, indices and values do not belong together");
    return {indptr.data(), indices.data(), values.data(), nullptr, nullptr,
            static_cast<std::int64_t>(indptr.size()) - 1};
}

Scale scale_of(int code, const MaybeLargest& largest, std::size_t slots) {
    if (code < 0 || code > 2) throw std::invalid_argument("scale: 0, 1 or 2");
    if (code == 2 && !(largest && largest->size() >= slots))
        throw std::invalid_argument("scale 2 needs the largest values of all coordinates");
    return static_cast<Scale>(code);
}

void check_width(std::int64_t width, std::size_t slots) {
    if (width < 0 || static_cast<std::size_t>(width) > slots)
        throw std::invalid_argument("rows: wider than the state");
}

// A learner's kernels with its settings: everything but the state, which NumPy owns.
class Kernel {
    LearnerKernels portable_, avx2_;
    std::vector<double> settings_;

    template <class Real>
    const Kernels<Real>& kernels() const {
        const LearnerKernels& all = use_avx2 ? avx2_ : portable_;
        if constexpr (sizeof(Real) == 4)
            return all.in_float32;
        else
            return all.in_float64;
    }

public:
    Kernel(const std::string& name, std::vector<double> settings) : settings_(std::move(settings)) {
        portable_ = portable::find_kernels(name.c_str());
#ifdef RARESTREAM_HAS_AVX2
        avx2_ = avx2::find_kernels(name.c_str());
#endif
        if (portable_.settings != static_cast<std::int64_t>(settings_.size()))
            throw std::invalid_argument(name + ": no such kernel, or not that many settings");
    }

    template <class Real>
    std::int64_t learn(Pairs<Real> pairs, InOut<double> tally, MaybeLargest largest, In<std::int64_t> indptr,
                       In<std::int32_t> indices, In<float> values, std::int64_t width, In<std::int8_t> labels,
                       std::optional<In<double>> importances, int scale, InOut<double> scores) const {
        Rows rows = borrow(indptr, indices, values);
        const std::size_t n = static_cast<std::size_t>(rows.size);
        if (labels.size() != n || scores.size() != n || tally.size() != 6 || (importances && importances->size() != n))
            throw std::invalid_argument("learn: labels, importances and scores go one to a row");
        check_width(width, pairs.shape(0));
        rows.labels = labels.data();
        rows.importances = importances ? importances->data() : nullptr;
        const Scale how = scale_of(scale, largest, pairs.shape(0));
        const Table<Real> table{reinterpret_cast<Pair<Real>*>(pairs.data()),
                                static_cast<std::int64_t>(pairs.shape(0)), largest ? largest->data() : nullptr};
        nb::gil_scoped_release released;
        const RowMemory<Real> memory(rows);
        return kernels<Real>().learn(settings_.data(), table, tally.data(), rows, how, scores.data(), memory.scratch);
    }

    template <class Real>
    void score(Pairs<Real> pairs, MaybeLargest largest, In<std::int64_t> indptr, In<std::int32_t> indices,
               In<float> values, std::int64_t width, int scale, InOut<double> scores) const {
        const Rows rows = borrow(indptr, indices, values);
        if (scores.size() != static_cast<std::size_t>(rows.size)) throw std::invalid_argument("score: one to a row");
        check_width(width, pairs.shape(0));
        const Scale how = scale_of(scale, largest, pairs.shape(0));
        const Table<Real> table{reinterpret_cast<Pair<Real>*>(pairs.data()),
                                static_cast<std::int64_t>(pairs.shape(0)), largest ? largest->data() : nullptr};
        nb::gil_scoped_release released;
        const RowMemory<Real> memory(rows);
        kernels<Real>().score(settings_.data(), table, rows, how, scores.data(), memory.scratch);
    }

    template <class Real>
    nb::ndarray<nb::numpy, Real, nb::ndim<1>> weights(Pairs<Real> pairs) const {
        const Table<Real> table{reinterpret_cast<Pair<Real>*>(pairs.data()),
                                static_cast<std::int64_t>(pairs.shape(0)), nullptr};
        std::unique_ptr<Real[]> out(new Real[pairs.shape(0) + 1]);
        {
            nb::gil_scoped_release released;
            kernels<Real>().weights(settings_.data(), table, out.get());
        }
        return owned(std::move(out), pairs.shape(0));
    }
};

// (index, z, n) of the coordinates that are not zero: what a file keeps of a state.
template <class Real>
nb::tuple touched(Pairs<Real> pairs) {
    const auto* all = reinterpret_cast<const Pair<Real>*>(pairs.data());
    const std::size_t slots = pairs.shape(0);
    std::vector<std::int32_t> index;
    std::vector<Real> z, n;
    {
        nb::gil_scoped_release released;
        constexpr std::size_t run = 4096;  // of slots, gathered without a branch: touched ones lie scattered
        std::int32_t some_index[run];
        Real some_z[run], some_n[run];
        for (std::size_t start = 0; start < slots; start += run) {
            const std::size_t end = std::min(slots, start + run);
            std::size_t count = 0;
            for (std::size_t j = start; j < end; ++j) {
                some_index[count] = static_cast<std::int32_t>(j);
                some_z[count] = all[j].z;
                some_n[count] = all[j].n;
                count += (all[j].z != 0) | (all[j].n != 0);
            }
            index.insert(index.end(), some_index, some_index + count);
            z.insert(z.end(), some_z, some_z + count);
            n.insert(n.end(), some_n, some_n + count);
        }
    }
    return nb::make_tuple(copied(index), copied(z), copied(n));
}

template <class Real>
void score_weights(In<Real> weights, MaybeLargest largest, In<std::int64_t> indptr, In<std::int32_t> indices,
                   In<float> values, std::int64_t width, int scale, InOut<double> scores) {
    const Rows rows = borrow(indptr, indices, values);
    if (scores.size() != static_cast<std::size_t>(rows.size)) throw std::invalid_argument("score: one to a row");
    check_width(width, weights.size());
    const Scale how = scale_of(scale, largest, weights.size());
    const float* most = largest ? largest->data() : nullptr;
    const std::int64_t size = static_cast<std::int64_t>(weights.size());
    nb::gil_scoped_release released;
    const RowMemory<Real> memory(rows);
    ScoreWeights<Real> run;
#ifdef RARESTREAM_HAS_AVX2
    if constexpr (sizeof(Real) == 4)
        run = use_avx2 ? avx2::score_weights_f32() : portable::score_weights_f32();
    else
        run = use_avx2 ? avx2::score_weights_f64() : portable::score_weights_f64();
#else
    if constexpr (sizeof(Real) == 4)
        run = portable::score_weights_f32();
    else
        run = portable::score_weights_f64();
#endif
    run(weights.data(), size, most, rows, how, scores.data(), memory.scratch);
}

}  // namespace

void bind_learners(nb::module_& m) {
    m.def("isa", &isa);
    m.def("set_isa", &set_isa);
    nb::class_<Gate>(m, "Gate")
        .def(nb::init<>())
        .def("begin_learning", &Gate::begin_learning)
        .def("end_learning", &Gate::end_learning)
        .def("begin_scoring", &Gate::begin_scoring)
        .def("end_scoring", &Gate::end_scoring);
    nb::class_<Kernel>(m, "Kernel")
        .def(nb::init<const std::string&, std::vector<double>>())
        .def("learn", &Kernel::learn<float>, nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg())
        .def("learn", &Kernel::learn<double>, nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg())
        .def("score", &Kernel::score<float>, nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg(), nb::arg())
        .def("score", &Kernel::score<double>, nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg(), nb::arg())
        .def("weights", &Kernel::weights<float>)
        .def("weights", &Kernel::weights<double>);
    m.def("touched", &touched<float>);
    m.def("touched", &touched<double>);
    m.def("score_weights", &score_weights<float>, nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg());
    m.def("score_weights", &score_weights<double>, nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg());
}

}  // namespace rarestream
