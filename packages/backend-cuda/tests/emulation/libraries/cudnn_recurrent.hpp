// cuDNN's recurrent layers, row by row in float64: descriptors, forward and backward pass.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "cudnn.hpp"
#include "emulation.hpp"

struct cudnnTensorStruct {
  cudnnDataType_t type{};
  std::vector<int> sizes, strides;
};
struct cudnnDropoutStruct {
  bool set = false;
};
struct cudnnRNNStruct {
  bool set = false;
  cudnnRNNMode_t cell{};
  bool has_biases = false;
  int directions = 1;
  cudnnDataType_t type{};
  cudnnMathType_t math{};
  int64_t input = 0, hidden = 0, layers = 0;
  int64_t gap = 0;  // between matrices, in elements

  int64_t gates() const { return cell == CUDNN_LSTM ? 4 : cell == CUDNN_GRU ? 3 : 1; }
  int64_t count() const { return layers * directions; }
  int64_t width(int64_t at) const { return at < directions ? input : directions * hidden; }
};
struct cudnnRNNDataStruct {
  bool set = false;
  cudnnDataType_t type{};
  int64_t width = 0;
  std::vector<int> lengths;
};

namespace emulation::recurrent {

using Values = std::vector<double>;

inline int64_t size_of(cudnnDataType_t type) {
  return type == CUDNN_DATA_DOUBLE ? 8 : type == CUDNN_DATA_FLOAT ? 4 : 2;
}
inline bool has_type(cudnnDataType_t type) {
  return type == CUDNN_DATA_DOUBLE || type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_HALF ||
         type == CUDNN_DATA_BFLOAT16;
}

inline double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

// ---- the weight space

// Offsets in elements of the matrices and biases of each gate: adjacent, or with gaps, which the
// library may insert.
struct Weights {
  explicit Weights(const cudnnRNNStruct& net) : net(net) {
    for (const bool biases : {false, true}) {
      if (biases && !net.has_biases) break;
      for (int64_t at = 0; at < net.count(); ++at)
        for (int64_t linear = 0; linear < 2 * net.gates(); ++linear) {
          (biases ? bias_places : matrix_places).push_back(size);
          size += net.gap + (biases ? net.hidden : net.hidden * columns(at, linear));
        }
    }
  }
  int64_t columns(int64_t at, int64_t linear) const { return linear < net.gates() ? net.width(at) : net.hidden; }
  int64_t matrix(int64_t at, int64_t linear) const {
    return matrix_places[static_cast<size_t>(at * 2 * net.gates() + linear)];
  }
  int64_t bias(int64_t at, int64_t linear) const {
    return net.has_biases ? bias_places[static_cast<size_t>(at * 2 * net.gates() + linear)] : -1;
  }

  cudnnRNNStruct net;
  int64_t size = 0;
  std::vector<int64_t> matrix_places, bias_places;
};

// ---- sequences

// The rows of a packed batch: sequence n has row n of each time step up to its length.
struct Rows {
  explicit Rows(const cudnnRNNDataStruct& data) : lengths(data.lengths) {
    for (int time = 0; time < lengths.front(); ++time) {
      starts.push_back(total);
      total += std::count_if(lengths.begin(), lengths.end(), [&](int length) { return length > time; });
    }
  }
  // The rows of a sequence in the order of a direction.
  std::vector<int64_t> of(size_t sequence, bool reverse) const {
    std::vector<int64_t> rows;
    for (int time = 0; time < lengths[sequence]; ++time)
      rows.push_back(starts[static_cast<size_t>(time)] + static_cast<int64_t>(sequence));
    if (reverse) std::reverse(rows.begin(), rows.end());
    return rows;
  }
  std::vector<int> lengths;
  std::vector<int64_t> starts;
  int64_t total = 0;
};

// ---- the reserve space

// Values of each direction of each layer: outputs, cells, gates. After the backward pass of the
// data also the gradients of the gates.
class Reserve {
 public:
  enum class Stage : uint64_t { Forward = 0x6f7277617264, Data = 0x64617461 };

  Reserve(const cudnnRNNStruct& net, int64_t rows) : hidden_(net.hidden), rows_(rows), count_(net.count()) {}
  size_t bytes() const { return sizeof(uint64_t) * static_cast<size_t>(1 + count_ * rows_ * parts * hidden_); }

  // The values of a row: part 0 outputs, 1 cells, 2 to 5 gates, 6 to 9 and 10 to 13 gradients.
  double* row(int64_t at, int64_t row, int64_t part) {
    return values_.data() + ((at * rows_ + row) * parts + part) * hidden_;
  }
  void clear() { values_.assign(static_cast<size_t>(count_ * rows_ * parts * hidden_), 0.0); }
  void write(void* memory, Stage stage) const {
    auto* words = static_cast<uint64_t*>(memory);
    words[0] = static_cast<uint64_t>(stage);
    for (size_t i = 0; i < values_.size(); ++i) {
      uint64_t bits;
      std::memcpy(&bits, &values_[i], sizeof bits);
      words[i + 1] = bits ^ scramble;
    }
  }
  // Returns false, with NaN values, if the memory was not written by the matching call.
  bool read(const void* memory, Stage stage) {
    const auto* words = static_cast<const uint64_t*>(memory);
    clear();
    if (words[0] != static_cast<uint64_t>(stage)) {
      std::fill(values_.begin(), values_.end(), std::numeric_limits<double>::quiet_NaN());
      return false;
    }
    for (size_t i = 0; i < values_.size(); ++i) {
      const uint64_t bits = words[i + 1] ^ scramble;
      std::memcpy(&values_[i], &bits, sizeof bits);
    }
    return true;
  }

 private:
  static constexpr int64_t parts = 14;
  static constexpr uint64_t scramble = 0x5555aaaa5555aaaa;
  int64_t hidden_, rows_, count_;
  Values values_;
};

// ---- forward and backward pass

// The arguments of a call, copied when it is queued.
struct Job {
  cudnnRNNStruct net;
  Weights weights;
  Rows rows;
  const void *x, *y, *hx, *cx, *space;

  double weight(int64_t place) const { return load(net.type, space, place); }
  double state(const void* states, int64_t at, int64_t n, int64_t unit) const {
    if (!states) return 0;
    return load(net.type, states, (at * static_cast<int64_t>(rows.lengths.size()) + n) * net.hidden + unit);
  }
  double rounded(double value) const {
    double room = 0;
    store(net.type, &room, 0, value);
    return load(net.type, &room, 0);
  }
  // The input of a row of a layer.
  Values below(Reserve& kept, int64_t at, int64_t row) const {
    Values result(static_cast<size_t>(net.width(at)));
    for (int64_t k = 0; k < net.width(at); ++k)
      result[static_cast<size_t>(k)] =
          at < net.directions
              ? load(net.type, x, row * net.input + k)
              : kept.row((at / net.directions - 1) * net.directions + k / net.hidden, row, 0)[k % net.hidden];
    return result;
  }
  // A gate's product with the input or the state, plus its bias.
  double share(int64_t at, int64_t linear, int64_t unit, const Values& values) const {
    double sum = net.has_biases ? weight(weights.bias(at, linear) + unit) : 0.0;
    const int64_t columns = weights.columns(at, linear), place = weights.matrix(at, linear) + unit * columns;
    for (int64_t k = 0; k < columns; ++k) sum += weight(place + k) * values[static_cast<size_t>(k)];
    return sum;
  }

  void forward(Reserve& kept) const {
    for (int64_t at = 0; at < net.count(); ++at)
      for (size_t n = 0; n < rows.lengths.size(); ++n) {
        Values h(static_cast<size_t>(net.hidden)), c(h.size());
        for (size_t u = 0; u < h.size(); ++u) {
          h[u] = state(hx, at, static_cast<int64_t>(n), static_cast<int64_t>(u));
          c[u] = state(cx, at, static_cast<int64_t>(n), static_cast<int64_t>(u));
        }
        for (const int64_t row : rows.of(n, at % net.directions == 1)) step(kept, at, row, h, c);
      }
  }
  void step(Reserve& kept, int64_t at, int64_t row, Values& h, Values& c) const {
    const Values input = below(kept, at, row), before = h;
    const int64_t gates = net.gates();
    for (int64_t u = 0; u < net.hidden; ++u) {
      std::array<double, 4> a{}, b{};
      for (int64_t g = 0; g < gates; ++g) {
        a[static_cast<size_t>(g)] = share(at, g, u, input);
        b[static_cast<size_t>(g)] = share(at, gates + g, u, before);
      }
      const auto keep = [&](std::array<double, 4> values) {
        for (int64_t g = 0; g < 4; ++g) kept.row(at, row, 2 + g)[u] = values[static_cast<size_t>(g)];
      };
      auto& state = h[static_cast<size_t>(u)];
      if (net.cell == CUDNN_LSTM) {
        const double i = sigmoid(a[0] + b[0]), f = sigmoid(a[1] + b[1]), g = std::tanh(a[2] + b[2]),
                     o = sigmoid(a[3] + b[3]);
        auto& cell = c[static_cast<size_t>(u)];
        cell = f * cell + i * g;
        state = rounded(o * std::tanh(cell));
        keep({i, f, g, o});
        kept.row(at, row, 1)[u] = cell;
      } else if (net.cell == CUDNN_GRU) {
        const double r = sigmoid(a[0] + b[0]), z = sigmoid(a[1] + b[1]), n = std::tanh(a[2] + r * b[2]);
        state = rounded((1 - z) * n + z * before[static_cast<size_t>(u)]);
        keep({r, z, n, b[2]});
      } else {
        state = rounded(net.cell == CUDNN_RNN_TANH ? std::tanh(a[0] + b[0]) : std::max(a[0] + b[0], 0.0));
      }
      kept.row(at, row, 0)[u] = state;
    }
  }

  // Writes the requested results.
  void write_forward(Reserve& kept, void* y_out, void* hy, void* cy) const {
    const int64_t above = net.count() - net.directions, batch = static_cast<int64_t>(rows.lengths.size());
    for (int64_t row = 0; row < rows.total; ++row)
      for (int64_t d = 0; d < net.directions; ++d)
        for (int64_t u = 0; u < net.hidden; ++u)
          store(net.type, y_out, (row * net.directions + d) * net.hidden + u, kept.row(above + d, row, 0)[u]);
    for (int64_t at = 0; at < net.count(); ++at)
      for (int64_t n = 0; n < batch; ++n) {
        const int64_t last = rows.of(static_cast<size_t>(n), at % net.directions == 1).back();
        for (int64_t u = 0; u < net.hidden; ++u) {
          const int64_t place = (at * batch + n) * net.hidden + u;
          if (hy) store(net.type, hy, place, kept.row(at, last, 0)[u]);
          if (cy) store(net.type, cy, place, kept.row(at, last, 1)[u]);
        }
      }
  }

  void backward(Reserve& kept, const void* dy, const void* dhy, const void* dcy, void* dx, void* dhx, void* dcx) const {
    const int64_t batch = static_cast<int64_t>(rows.lengths.size()), wide = net.directions * net.hidden;
    Values of_output(static_cast<size_t>(rows.total * wide));
    for (size_t i = 0; i < of_output.size(); ++i) of_output[i] = load(net.type, dy, static_cast<int64_t>(i));
    for (int64_t layer = net.layers; layer-- > 0;) {
      const int64_t width = net.width(layer * net.directions);
      Values of_input(static_cast<size_t>(rows.total * width));
      for (int64_t d = 0; d < net.directions; ++d)
        for (int64_t n = 0; n < batch; ++n) {
          const int64_t at = layer * net.directions + d;
          Values dh(static_cast<size_t>(net.hidden)), dc(dh.size());
          for (size_t u = 0; u < dh.size(); ++u) {
            dh[u] = state(dhy, at, n, static_cast<int64_t>(u));
            dc[u] = state(dcy, at, n, static_cast<int64_t>(u));
          }
          const std::vector<int64_t> order = rows.of(static_cast<size_t>(n), d == 1);
          for (size_t i = order.size(); i-- > 0;) {
            const int64_t row = order[i], earlier = i ? order[i - 1] : -1;
            for (int64_t u = 0; u < net.hidden; ++u)
              dh[static_cast<size_t>(u)] += of_output[static_cast<size_t>(row * wide + d * net.hidden + u)];
            step_back(kept, at, n, row, earlier, dh, dc, of_input);
          }
          for (int64_t u = 0; u < net.hidden; ++u) {
            const int64_t place = (at * batch + n) * net.hidden + u;
            if (dhx) store(net.type, dhx, place, dh[static_cast<size_t>(u)]);
            if (dcx) store(net.type, dcx, place, dc[static_cast<size_t>(u)]);
          }
        }
      of_output = std::move(of_input);
    }
    for (size_t i = 0; i < of_output.size(); ++i) store(net.type, dx, static_cast<int64_t>(i), of_output[i]);
  }
  void step_back(Reserve& kept, int64_t at, int64_t n, int64_t row, int64_t earlier, Values& dh, Values& dc,
                 Values& of_input) const {
    const int64_t gates = net.gates(), width = net.width(at);
    Values through(dh.size());
    for (int64_t u = 0; u < net.hidden; ++u) {
      const auto gate = [&](int64_t g) { return kept.row(at, row, 2 + g)[u]; };
      const auto give = [&](int64_t g, double of_share, double of_state) {
        kept.row(at, row, 6 + g)[u] = of_share;
        kept.row(at, row, 10 + g)[u] = of_state;
      };
      const double up = dh[static_cast<size_t>(u)];
      if (net.cell == CUDNN_LSTM) {
        const double i = gate(0), f = gate(1), g = gate(2), o = gate(3), t = std::tanh(kept.row(at, row, 1)[u]);
        const double c_before = earlier >= 0 ? kept.row(at, earlier, 1)[u] : state(cx, at, n, u);
        const double of_cell = dc[static_cast<size_t>(u)] + up * o * (1 - t * t);
        const std::array<double, 4> slopes{of_cell * g * i * (1 - i), of_cell * c_before * f * (1 - f),
                                           of_cell * i * (1 - g * g), up * t * o * (1 - o)};
        for (int64_t k = 0; k < 4; ++k) give(k, slopes[static_cast<size_t>(k)], slopes[static_cast<size_t>(k)]);
        dc[static_cast<size_t>(u)] = of_cell * f;
      } else if (net.cell == CUDNN_GRU) {
        const double r = gate(0), z = gate(1), m = gate(2), own = gate(3);
        const double before = earlier >= 0 ? kept.row(at, earlier, 0)[u] : state(hx, at, n, u);
        const double dn = up * (1 - z) * (1 - m * m), dr = dn * own * r * (1 - r), dz = up * (before - m) * z * (1 - z);
        give(0, dr, dr);
        give(1, dz, dz);
        give(2, dn, dn * r);
        through[static_cast<size_t>(u)] = up * z;
      } else {
        const double h = kept.row(at, row, 0)[u], slope = net.cell == CUDNN_RNN_TANH ? up * (1 - h * h)
                                                          : h > 0                    ? up
                                                                                     : 0.0;
        give(0, slope, slope);
      }
    }
    for (int64_t g = 0; g < gates; ++g)
      for (int64_t u = 0; u < net.hidden; ++u) {
        const double of_share = kept.row(at, row, 6 + g)[u], of_state = kept.row(at, row, 10 + g)[u];
        for (int64_t k = 0; k < width; ++k)
          of_input[static_cast<size_t>(row * width + k)] += of_share * weight(weights.matrix(at, g) + u * width + k);
        for (int64_t k = 0; k < net.hidden; ++k)
          through[static_cast<size_t>(k)] += of_state * weight(weights.matrix(at, gates + g) + u * net.hidden + k);
      }
    dh = through;
  }

  void add_weights(Reserve& kept, void* gradients) const {
    Values sums(static_cast<size_t>(weights.size));
    const int64_t gates = net.gates();
    for (int64_t at = 0; at < net.count(); ++at)
      for (size_t n = 0; n < rows.lengths.size(); ++n) {
        int64_t earlier = -1;
        for (const int64_t row : rows.of(n, at % net.directions == 1)) {
          const Values input = below(kept, at, row);
          for (int64_t linear = 0; linear < 2 * gates; ++linear)
            for (int64_t u = 0; u < net.hidden; ++u) {
              const bool own = linear >= gates;
              const double slope = kept.row(at, row, (own ? 10 : 6) + linear % gates)[u];
              if (net.has_biases) sums[static_cast<size_t>(weights.bias(at, linear) + u)] += slope;
              const int64_t columns = weights.columns(at, linear);
              for (int64_t k = 0; k < columns; ++k) {
                const double factor = !own           ? input[static_cast<size_t>(k)]
                                      : earlier >= 0 ? kept.row(at, earlier, 0)[k]
                                                     : state(hx, at, static_cast<int64_t>(n), k);
                sums[static_cast<size_t>(weights.matrix(at, linear) + u * columns + k)] += slope * factor;
              }
            }
          earlier = row;
        }
      }
    for (int64_t i = 0; i < weights.size; ++i)
      store(net.type, gradients, i, load(net.type, gradients, i) + sums[static_cast<size_t>(i)]);
  }
};

}  // namespace emulation::recurrent
