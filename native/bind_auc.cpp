// Python bindings of the metrics: exact AUC, placements, the sketch behind StreamingAuc, and the core of DriftDetector.
#include "arrays.hpp"
#include "auc.hpp"
#include "drift.hpp"
#include "kernel.hpp"
#include "placements.hpp"
#include "rank_sketch_arrays.hpp"
#include "scored_rows.hpp"
#include "streaming_sketch.hpp"

#include <cstring>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

namespace rarestream {

template <class T>
std::vector<T> required_array(const nb::dict& arrays, const std::string& name) {
    In<T> array;
    if (!arrays.contains(name.c_str()) || !nb::try_cast(arrays[name.c_str()], array, false))
        throw std::invalid_argument("array '" + name + "' is missing, or is not one-dimensional and of the right dtype");
    return std::vector<T>(array.data(), array.data() + array.size());
}

template <class Label>
nb::object narrowed_labels(In<Label> labels) {
    std::unique_ptr<std::int8_t[]> out(new std::int8_t[labels.size()]);
    {
        nb::gil_scoped_release released;
        narrow_labels(labels.data(), out.get(), labels.size());
    }
    return nb::cast(owned(std::move(out), labels.size()));
}

void check_lengths(std::size_t labels, std::size_t scores, std::size_t importances) {
    if (labels != scores || importances != scores)
        throw std::invalid_argument("labels, scores and importances must have the same length");
    if (scores >> 32) throw std::invalid_argument("more than 2^32 rows at once; add them to a StreamingAuc in blocks");
}

using Labels = In<std::int8_t>;
using Importances = std::optional<In<double>>;

template <class Score>
struct ScoredRows {
    const std::int8_t* labels;
    const Score* scores;
    const double* importances;
    std::size_t n;

    ScoredRows(const Labels& y, const In<Score>& s, const Importances& h)
        : labels(y.data()), scores(s.data()), importances(h ? h->data() : nullptr), n(s.size()) {
        check_lengths(y.size(), n, h ? h->size() : n);
    }
};

// (fault, row).
nb::tuple checked_labels(Labels labels) {
    ScoredCheck check;
    {
        nb::gil_scoped_release released;
        check = check_labels(labels.data(), labels.size());
    }
    return nb::make_tuple(check.fault, check.row);
}

// (fault, row, positive rows, negative rows); rows of importance 0 do not count.
template <class Score>
nb::tuple survey_labels(Labels labels, In<Score> scores, Importances importances) {
    const ScoredRows<Score> rows(labels, scores, importances);
    ScoredCheck check;
    std::size_t count[2] = {0, 0};
    {
        nb::gil_scoped_release released;
        check = check_scored(rows.labels, rows.scores, rows.importances, rows.n);
        for (std::size_t i = 0; i < rows.n; ++i)
            if (!rows.importances || rows.importances[i] > 0) ++count[rows.labels[i] > 0];
    }
    return nb::make_tuple(check.fault, check.row, count[1], count[0]);
}

// (fault, row, positive rows, negative rows, auc).
template <class Score>
nb::tuple exact_auc(Labels labels, In<Score> scores, Importances importances) {
    const ScoredRows<Score> rows(labels, scores, importances);
    ScoredCheck check;
    PairCount pairs;
    double auc = 0;
    {
        nb::gil_scoped_release released;
        check = check_scored(rows.labels, rows.scores, rows.importances, rows.n);
        if (check.fault == ScoredFault::none && !rows.importances) {
            pairs = count_pairs(rows.labels, rows.scores, rows.n);
            auc = pairs.auc();
        } else if (check.fault == ScoredFault::none) {
            const ClassPoints points(rows.labels, rows.scores, rows.importances, rows.n);
            pairs.n_pos = points.pos.size();
            pairs.n_neg = points.neg.size();
            auc = placement_stats(points.pos, points.neg).auc;
        }
    }
    return nb::make_tuple(check.fault, check.row, pairs.n_pos, pairs.n_neg, auc);
}

// (auc, variance of the positives' and of the negatives' placements) of rows that survey_labels has checked.
template <class Score>
nb::tuple exact_placed(Labels labels, In<Score> scores, Importances importances) {
    const ScoredRows<Score> rows(labels, scores, importances);
    PlacementStats stats;
    {
        nb::gil_scoped_release released;
        const ClassPoints points(rows.labels, rows.scores, rows.importances, rows.n);
        stats = placement_stats(points.pos, points.neg);
        if (!rows.importances) stats.auc = count_pairs(rows.labels, rows.scores, rows.n).auc();
    }
    return nb::make_tuple(stats.auc, stats.spread_pos, stats.spread_neg);
}

// Every row's placement, of rows that survey_labels has checked.
template <class Score>
nb::object row_placements(Labels labels, In<Score> scores, Importances importances) {
    const ScoredRows<Score> rows(labels, scores, importances);
    std::unique_ptr<double[]> out(new double[rows.n]);
    {
        nb::gil_scoped_release released;
        placements(rows.labels, rows.scores, rows.importances, rows.n, out.get());
    }
    return nb::cast(owned(std::move(out), rows.n));
}

// The placements of every row under some scorers, whose scores are the columns from `first` on; a row of `placed` for each.
template <class Score>
void scorer_placements(Labels labels, Matrix<Score> scores, Importances importances, std::size_t first,
                       nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu> placed) {
    const std::size_t rows = scores.shape(0), all = scores.shape(1), scorers = placed.shape(0);
    if (labels.size() != rows || (importances && importances->size() != rows) || placed.shape(1) != rows || first > all ||
        scorers > all - first)
        throw std::invalid_argument("scorer_placements: the shapes of the arrays do not match");
    nb::gil_scoped_release released;
    std::vector<Score> column(rows);
    for (std::size_t one = 0; one < scorers; ++one) {
        for (std::size_t i = 0; i < rows; ++i) column[i] = scores.data()[i * all + first + one];
        placements(labels.data(), column.data(), importances ? importances->data() : nullptr, rows,
                   placed.data() + one * rows);
    }
}

// The standard deviation of each column, in float64: NumPy's, bit for bit.
nb::object column_spreads(Matrix<float> scores) {
    const std::size_t rows = scores.shape(0), columns = scores.shape(1);
    std::vector<double> means(columns, 0), sums(columns, 0);
    {
        nb::gil_scoped_release released;
        const double n = static_cast<double>(rows);
        for (std::size_t i = 0; i < rows; ++i)
            for (std::size_t c = 0; c < columns; ++c) means[c] += static_cast<double>(scores.data()[i * columns + c]);
        for (double& mean : means) mean /= n;
        for (std::size_t i = 0; i < rows; ++i)
            for (std::size_t c = 0; c < columns; ++c) {
                const double apart = static_cast<double>(scores.data()[i * columns + c]) - means[c];
                sums[c] += apart * apart;
            }
        for (double& sum : sums) sum = std::sqrt(sum / n);
    }
    return nb::cast(copied(sums));
}

// The standard errors of the AUC of each scorer minus that of scorer `other`, from the placements of all; the rows of the
// positives come first.
nb::object placement_errors(std::size_t positives, Matrix<double> placed, Importances importances, std::size_t other) {
    const std::size_t scorers = placed.shape(0), rows = placed.shape(1);
    if (positives > rows || (importances && importances->size() != rows) || other >= scorers)
        throw std::invalid_argument("placement_errors: the shapes of the arrays do not match, or there is no such scorer");
    std::unique_ptr<double[]> out(new double[scorers]);
    {
        nb::gil_scoped_release released;
        PlacementGaps gaps(positives, importances ? importances->data() : nullptr, rows);
        for (std::size_t one = 0; one < scorers; ++one)
            out[one] = gaps.error(placed.data() + one * rows, placed.data() + other * rows);
    }
    return nb::cast(owned(std::move(out), scorers));
}

// The importance of positives and of negatives at every distinct score, from the highest down.
template <class Score>
nb::tuple tally_scores(Labels labels, In<Score> scores, Importances importances) {
    const ScoredRows<Score> rows(labels, scores, importances);
    std::vector<double> pos, neg;
    {
        nb::gil_scoped_release released;
        const ClassPoints points(rows.labels, rows.scores, rows.importances, rows.n, true);
        sweep(points.pos, points.neg, [&](double p, double q, double, double) {
            pos.push_back(p);
            neg.push_back(q);
        });
        std::reverse(pos.begin(), pos.end());
        std::reverse(neg.begin(), neg.end());
    }
    return nb::make_tuple(copied(pos), copied(neg));
}

// (fault, row); nothing was added unless the fault is none.
nb::tuple add_to_sketch(StreamingSketch& sketch, Labels labels, In<double> scores, Importances importances) {
    const ScoredRows<double> rows(labels, scores, importances);
    ScoredCheck check;
    {
        nb::gil_scoped_release released;
        // Sums of squares of larger importances could overflow, and those of smaller ones underflow.
        check = check_scored(rows.labels, rows.scores, rows.importances, rows.n, 1e-100, 1e100);
        if (check.fault == ScoredFault::none) sketch.add(rows.labels, rows.scores, rows.importances, rows.n);
    }
    return nb::make_tuple(check.fault, check.row);
}

// (auc, variance of the positives' and of the negatives' placements, bound).
nb::tuple sketch_placed(const StreamingSketch& sketch) {
    PlacementStats stats;
    double bound;
    {
        nb::gil_scoped_release released;
        const AucSketch now = sketch.copy();
        stats = now.stats();
        bound = now.bound();
    }
    return nb::make_tuple(stats.auc, stats.spread_pos, stats.spread_neg, bound);
}

// (rows, sum of importances, sum of their squares) of one class.
nb::tuple sketch_totals(const StreamingSketch& sketch, bool positive) {
    return sketch.read([&](const AucSketch& now) {
        const RankSketch& ranks = positive ? now.pos : now.neg;
        return nb::make_tuple(ranks.rows(), ranks.weight(), ranks.squares());
    });
}

nb::dict sketch_state(const StreamingSketch& sketch) {
    const AucSketch now = sketch.copy();
    nb::dict out;
    for (const bool positive : {true, false}) {
        const SketchArrays saved = (positive ? now.pos : now.neg).to_arrays();
        const std::string prefix = positive ? "pos_" : "neg_";
        out[(prefix + "scores").c_str()] = copied(saved.scores);
        out[(prefix + "weights").c_str()] = copied(saved.weights);
        out[(prefix + "runs").c_str()] = copied(saved.runs);
        out[(prefix + "counts").c_str()] = copied(saved.counts);
        out[(prefix + "sums").c_str()] = copied(saved.sums);
    }
    return out;
}

void load_sketch(StreamingSketch& sketch, nb::dict arrays) {
    AucSketch next;
    for (const bool positive : {true, false}) {
        const std::string prefix = positive ? "pos_" : "neg_";
        SketchArrays saved;
        saved.scores = required_array<double>(arrays, prefix + "scores");
        saved.weights = required_array<double>(arrays, prefix + "weights");
        saved.runs = required_array<std::int64_t>(arrays, prefix + "runs");
        saved.counts = required_array<std::int64_t>(arrays, prefix + "counts");
        saved.sums = required_array<double>(arrays, prefix + "sums");
        (positive ? next.pos : next.neg) = RankSketch::from_arrays(saved);
    }
    sketch.replace(std::move(next));
}

// Rows as those of a StreamingSketch, checked.
void calibrate(InOut<double> numbers, Labels labels, In<double> scores, Importances importances) {
    const ScoredRows<double> rows(labels, scores, importances);
    if (numbers.size() != CALIBRATION_NUMBERS) throw std::invalid_argument("a calibration has other numbers");
    nb::gil_scoped_release released;
    calibrator_here()(numbers.data(), rows.labels, rows.scores, rows.importances, rows.n);
}

// (fault, row, alarms); nothing was counted unless the fault is none. An alarm is its row, the row where the fall began,
// and number, mean and variance of the placements before and after.
nb::tuple count_in_detector(DriftDetector& detector, Labels labels, In<double> scores, Importances importances) {
    const ScoredRows<double> rows(labels, scores, importances);
    const ScoredCheck check = check_scored(rows.labels, rows.scores, rows.importances, rows.n);
    nb::list alarms;
    const auto raise = [&](const DriftAlarm& alarm) {
        const auto &before = alarm.before, &after = alarm.after;
        alarms.append(nb::make_tuple(alarm.row, alarm.begin, before.n, before.mean(), before.spread(), after.n,
                                     after.mean(), after.spread()));
    };
    if (check.fault == ScoredFault::none) detector.count(rows.labels, rows.scores, rows.importances, rows.n, raise);
    return nb::make_tuple(check.fault, check.row, alarms);
}

nb::dict detector_state(const DriftDetector& detector) {
    std::vector<double> numbers(DRIFT_NUMBERS);
    std::memcpy(numbers.data(), &detector.numbers(), sizeof(DriftNumbers));
    nb::dict arrays;
    arrays["numbers"] = copied(numbers);
    arrays["scores"] = copied(detector.scores());
    return arrays;
}

void load_detector(DriftDetector& detector, nb::dict arrays) {
    const auto numbers = required_array<double>(arrays, "numbers");
    if (numbers.size() != DRIFT_NUMBERS) throw std::invalid_argument("array 'numbers' is of another length");
    DriftNumbers loaded;
    std::memcpy(&loaded, numbers.data(), sizeof loaded);
    if (!detector.load(loaded, required_array<double>(arrays, "scores")))
        throw std::invalid_argument("arrays 'numbers' and 'scores' do not go together");
}

void bind_auc(nb::module_& m) {
    nb::enum_<ScoredFault>(m, "ScoredFault", nb::is_arithmetic())  // arithmetic: `none` is false
        .value("none", ScoredFault::none)
        .value("label", ScoredFault::label)
        .value("mixed_labels", ScoredFault::mixed_labels)
        .value("score", ScoredFault::score)
        .value("importance", ScoredFault::importance);
    m.def("check_labels", &checked_labels, no_convert());
    m.def("narrow_labels", &narrowed_labels<std::int32_t>, no_convert());
    m.def("narrow_labels", &narrowed_labels<std::int64_t>, no_convert());
    m.def("narrow_labels", &narrowed_labels<float>, no_convert());
    m.def("narrow_labels", &narrowed_labels<double>, no_convert());

    const auto def = [&m](const char* name, auto of_float, auto of_double) {
        const auto y = no_convert("labels"), s = no_convert("scores");
        const auto h = no_convert("importances").none();
        m.def(name, of_float, y, s, h);
        m.def(name, of_double, y, s, h);
    };
    def("survey_labels", &survey_labels<float>, &survey_labels<double>);
    def("exact_auc", &exact_auc<float>, &exact_auc<double>);
    def("exact_placed", &exact_placed<float>, &exact_placed<double>);
    def("placements", &row_placements<float>, &row_placements<double>);
    const auto def_scorers = [&m](auto of_scores) {
        m.def("scorer_placements", of_scores, no_convert("labels"), no_convert("scores"), no_convert("importances").none(),
              no_convert("first"), no_convert("placed"));
    };
    def_scorers(&scorer_placements<float>);
    def_scorers(&scorer_placements<double>);
    m.def("column_spreads", &column_spreads, no_convert("scores"));
    m.def("placement_errors", &placement_errors, no_convert("positives"), no_convert("placed"),
          no_convert("importances").none(), no_convert("other"));
    def("tally_scores", &tally_scores<float>, &tally_scores<double>);

    m.attr("CALIBRATION_NUMBERS") = CALIBRATION_NUMBERS;
    m.def("calibrate", &calibrate, no_convert("numbers"), no_convert("labels"), no_convert("scores"),
          no_convert("importances").none());

    nb::class_<StreamingSketch>(m, "StreamingSketch")
        .def(nb::init<>())
        .def("add", &add_to_sketch, no_convert("labels"), no_convert("scores"), no_convert("importances").none())
        .def("merge", &StreamingSketch::merge, no_convert(), nb::call_guard<nb::gil_scoped_release>())
        .def("placed", &sketch_placed)
        .def("totals", &sketch_totals, no_convert())
        .def("state", &sketch_state)
        .def("load", &load_sketch, no_convert());

    nb::class_<DriftDetector>(m, "DriftDetector")
        .def(nb::init<double, double, std::size_t>(), no_convert("limit"), no_convert("tolerance"), no_convert("window"))
        .def("count", &count_in_detector, no_convert("labels"), no_convert("scores"), no_convert("importances").none())
        .def_prop_ro("rows", [](const DriftDetector& it) { return it.numbers().rows; })
        .def_prop_ro("positives", [](const DriftDetector& it) { return it.numbers().positives; })
        .def_prop_ro("alarms", [](const DriftDetector& it) { return it.numbers().alarms; })
        .def_prop_ro("reference", [](const DriftDetector& it) { return it.numbers().reference; })
        .def_prop_ro("statistic", &DriftDetector::statistic)
        .def("state", &detector_state)
        .def("load", &load_detector, no_convert());
}

}  // namespace rarestream
