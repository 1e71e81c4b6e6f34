#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "tc/interp/interpreter.h"
#include "tests/api/tensors.h"
#include "tests/common/program.h"

/// Left sides that are more than names of indices (C3, C7), against loops over plain arrays: neither the front end nor
/// the interpreter has a part in what is expected.
namespace tc::testing {
namespace {

using Integers = std::vector<int64_t>;

/// Integers in [0, limit) that look random.
Integers pattern(int64_t count, int64_t limit, int64_t seed = 1) {
  Integers values;
  for (int64_t i = 0; i < count; ++i) values.push_back((i * 7919 + seed * 104729 + i * i * 31) % limit);
  return values;
}

struct Data {
  std::vector<int64_t> shape;
  Integers elements;
};

/// A def over int64 tensors with one result.
struct Case {
  std::string text;
  std::map<std::string, int64_t> sizes{};
  std::vector<Data> inputs;  ///< in the order of the parameters
  Data result;               ///< its elements before the run
  Integers expected;
  std::map<std::string, int64_t> scalars{};
};

api::TensorSpec spec(const Data& data) { return {.type = ScalarType::kInt64, .shape = data.shape}; }

Integers on_backend(const Case& c, api::Backend backend) {
  api::Request request{.sizes = c.sizes, .backend = backend};
  std::vector<api::Tensor> inputs, outputs;
  for (const Data& data : c.inputs) {
    request.inputs.emplace_back(spec(data));
    inputs.push_back(tensor_of(spec(data), data.elements));
  }
  request.outputs.emplace_back(spec(c.result));
  std::vector<api::Scalar> scalars;
  for (const auto& [name, value] : c.scalars) {
    request.scalars.emplace(name, value);
    scalars.emplace_back(value);
  }
  outputs.push_back(tensor_of(spec(c.result), c.result.elements));
  const api::CompiledKernel kernel = take(api::compile(c.text, request));
  const Result<void> done = kernel.run(inputs, outputs, scalars);
  EXPECT_TRUE(done) << done.error().to_string();
  return elements_of<int64_t>(outputs[0]);
}

Integers on_interpreter(const Case& c) {
  const ir::Program program = program_from(c.text);
  ir::Given given{.shapes = {}, .scalars = c.scalars, .sizes = c.sizes};
  interp::Environment environment;
  const auto add = [&](const std::string& name, const Data& data) {
    interp::Value value = interp::Value::zeros(ScalarType::kInt64, data.shape);
    value.integers = data.elements;
    environment.emplace(name, std::move(value));
    given.shapes[name] = data.shape;
  };
  size_t next = 0;
  for (const std::string& name : program.parameters) {
    if (!program.find_scalar(name)) add(name, c.inputs.at(next++));
  }
  add(program.results.at(0), c.result);
  const ir::Program specialised = take(ir::specialise(program, take(ir::bind(program, given))));
  return take(interp::run(specialised, environment)).at(program.results[0]).integers;
}

void expect_everywhere(const Case& c) {
  EXPECT_EQ(on_interpreter(c), c.expected) << c.text;
  EXPECT_EQ(on_backend(c, api::Backend::kCpu), c.expected) << c.text;
  EXPECT_EQ(on_backend(c, api::Backend::kSimulator), c.expected) << c.text;
}

// --- C3: the right side is read first ---------------------------------------------------------------------------

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

/// H(I(i)) op=! f(H, i), in the order that the language says: read all, set the identity, combine.
template <typename Value, typename Combine>
Integers scattered(const Integers& places, const Integers& before, int64_t identity, Value value, Combine combine) {
  Integers after(before.size(), identity);
  for (size_t i = 0; i < places.size(); ++i) {
    int64_t& element = after[static_cast<size_t>(places[i])];
    element = combine(element, value(before, static_cast<int64_t>(i)));
  }
  return after;
}

TEST(LeftSide, C3_AScatterFromTheIdentityReadsWhatWasThere) {
  const auto own = [](const Integers& h, int64_t i) { return h[static_cast<size_t>(i)]; };
  for (const int64_t n : {1, 3, 7, 16, 33}) {
    const Integers places = pattern(n, n), before = pattern(n, 90, 5);
    const std::string signature = "def f(int64(N) I) -> (int64(N) H) ";
    expect_everywhere({signature + "{ H(I(i)) +=! H(i) }",
                       {},
                       {{{n}, places}},
                       {{n}, before},
                       scattered(places, before, 0, own, std::plus())});
    expect_everywhere({signature + "{ H(I(i)) max=! H(i) }",
                       {},
                       {{{n}, places}},
                       {{n}, before},
                       scattered(places, before, kLeast, own, [](int64_t a, int64_t b) { return std::max(a, b); })});
    const auto sum = [&](const Integers& h, int64_t i) {
      return 2 * h[static_cast<size_t>(places[static_cast<size_t>(i)])] + h[0];
    };
    expect_everywhere({signature + "{ H(I(i)) *=! 2 * H(I(i)) + H(0) }",
                       {},
                       {{{n}, places}},
                       {{n}, before},
                       scattered(places, before, 1, sum, std::multiplies())});
  }
}

TEST(LeftSide, C3_AnAccumulatingScatterReadsWhatWasThere) {
  for (const int64_t n : {1, 5, 16}) {
    const Integers places = pattern(n, n), before = pattern(n, 90, 5);
    Integers after = before;
    for (int64_t i = 0; i < n; ++i)
      after[static_cast<size_t>(places[static_cast<size_t>(i)])] += before[static_cast<size_t>(i)];
    expect_everywhere(
        {"def f(int64(N) I) -> (int64(N) H) { H(I(i)) += H(i) }", {}, {{{n}, places}}, {{n}, before}, after});
  }
}

TEST(LeftSide, C3_SubscriptsThatReadTheWrittenTensorAreReadFirst) {
  for (const int64_t n : {1, 4, 9, 16}) {
    const Integers before = pattern(n, n, 3);
    Integers counted = before, started(before.size(), 0);
    for (const int64_t at : before) {
      ++counted[static_cast<size_t>(at)];
      ++started[static_cast<size_t>(at)];
    }
    const std::string signature = "def f(int64(N) A) -> (int64(N) H) ";
    const std::vector<Data> inputs = {{{n}, pattern(n, 9)}};
    expect_everywhere({signature + "{ H(H(i)) += 1 where exists A(i) }", {}, inputs, {{n}, before}, counted});
    expect_everywhere({signature + "{ H(H(i)) +=! 1 where exists A(i) }", {}, inputs, {{n}, before}, started});
  }
}

TEST(LeftSide, C3_AffineLeftSidesReadWhatWasThere) {
  for (const int64_t n : {1, 2, 8, 13, 33, 64, 100}) {
    const Integers before = pattern(n, 50);
    const auto at = [&](int64_t i) { return static_cast<size_t>(i); };
    Integers reversed(before.size()), halved = before, started = before;
    for (int64_t i = 0; i < n; ++i) reversed[at(n - 1 - i)] = before[at(i)];
    for (int64_t i = 0; i < n; ++i) halved[at(i / 2)] += before[at(i)];
    for (int64_t i = 0; i < n; ++i) started[at(i / 2)] = 0;
    for (int64_t i = 0; i < n; ++i) started[at(i / 2)] += before[at(i)];
    const std::string signature = "def f(int64(N) A) -> (int64(N) T) ";
    const std::vector<Data> inputs = {{{n}, pattern(n, 9)}};
    expect_everywhere({signature + "{ T(N-1-i) +=! T(i) }", {}, inputs, {{n}, before}, reversed});
    expect_everywhere({signature + "{ T(N-1-i) = T(i) }", {}, inputs, {{n}, before}, reversed});
    expect_everywhere({signature + "{ T(i/2) += T(i) where i in 0:N }", {}, inputs, {{n}, before}, halved});
    expect_everywhere({signature + "{ T(i/2) +=! T(i) where i in 0:N }", {}, inputs, {{n}, before}, started});
  }
}

// --- C7: affine left sides with '=' -----------------------------------------------------------------------------

TEST(LeftSide, C7_Concatenates) {
  for (const auto& [n, m] : {std::pair<int64_t, int64_t>{1, 1}, {3, 5}, {16, 64}, {0, 4}, {4, 0}}) {
    const Integers x = pattern(n, 90), y = pattern(m, 90, 2);
    Integers z = x;
    z.insert(z.end(), y.begin(), y.end());
    expect_everywhere({"def f(int64(N) x, int64(M) y) -> (z) { z(i) = x(i)\n z(N + i) = y(i) }",
                       {},
                       {{{n}, x}, {{m}, y}},
                       {{n + m}, Integers(z.size(), 7)},
                       z});
  }
}

TEST(LeftSide, C7_InterleavesAndLeavesGapsAlone) {
  for (const int64_t n : {1, 4, 17, 64}) {
    const Integers x = pattern(n, 90), y = pattern(n, 90, 2);
    Integers both(static_cast<size_t>(2 * n)), odd(static_cast<size_t>(2 * n), 7);
    for (size_t i = 0; i < x.size(); ++i) {
      both[2 * i] = x[i];
      both[2 * i + 1] = odd[2 * i + 1] = y[i];
    }
    const std::string signature = "def f(int64(N) x, int64(N) y) -> (z) ";
    const Data result{{2 * n}, Integers(both.size(), 7)};
    const std::vector<Data> inputs = {{{n}, x}, {{n}, y}};
    expect_everywhere({signature + "{ z(2*i) = x(i)\n z(2*i + 1) = y(i) }", {}, inputs, result, both});
    expect_everywhere({signature + "{ z(2*i + 1) = y(i) where exists x(i) }", {}, inputs, result, odd});
  }
}

TEST(LeftSide, C7_RotatesInTwoStatements) {
  const int64_t s = 3;
  for (const int64_t e : {1, 4, 9, 32}) {
    const Integers x = pattern(s * 2 * e, 9), c = pattern(s * e, 9, 2), w = pattern(s * e, 9, 3);
    Integers o(x.size());
    for (int64_t r = 0; r < s; ++r) {
      for (int64_t d = 0; d < e; ++d) {
        const auto low = static_cast<size_t>(r * 2 * e + d), high = low + static_cast<size_t>(e);
        const auto angle = static_cast<size_t>(r * e + d);
        o[low] = x[low] * c[angle] - x[high] * w[angle];
        o[high] = x[high] * c[angle] + x[low] * w[angle];
      }
    }
    expect_everywhere(
        {"def f(int64(S,2*E) X, int64(S,E) C, int64(S,E) W) -> (O) {\n"
         "  O(s,d) = X(s,d) * C(s,d) - X(s,d + E) * W(s,d)\n"
         "  O(s,d + E) = X(s,d + E) * C(s,d) + X(s,d) * W(s,d)\n"
         "}",
         {},
         {{{s, 2 * e}, x}, {{s, e}, c}, {{s, e}, w}},
         {{s, 2 * e}, Integers(o.size(), 7)},
         o});
  }
}

TEST(LeftSide, C7_ShufflesPixels) {
  const int64_t c = 2, h = 3, w = 5, r = 2;
  const Integers x = pattern(c * r * r * h * w, 90);
  Integers o(x.size());
  for (int64_t k = 0; k < c; ++k)
    for (int64_t i = 0; i < r; ++i)
      for (int64_t j = 0; j < r; ++j)
        for (int64_t y = 0; y < h; ++y)
          for (int64_t z = 0; z < w; ++z)
            o[static_cast<size_t>((k * h * r + y * r + i) * w * r + z * r + j)] =
                x[static_cast<size_t>((((k * r + i) * r + j) * h + y) * w + z)];
  const Data result{{c, h * r, w * r}, Integers(o.size(), 7)};
  expect_everywhere({"def f(int64(C,2,2,H,W) X) -> (O) { O(c,2*y + i,2*z + j) = X(c,i,j,y,z) }",
                     {},
                     {{{c, r, r, h, w}, x}},
                     result,
                     o});
  expect_everywhere({"def f(int64(C,R,R,H,W) X) -> (O) { O(c,R*y + i,R*z + j) = X(c,i,j,y,z) }",
                     {},
                     {{{c, r, r, h, w}, x}},
                     result,
                     o});
  expect_everywhere(
      {"def f(int64(C,R,R,H,W) X, int32 r) -> (O) {\n"
       "  O(c,r*y + i,r*z + j) = X(c,i,j,y,z) where i in 0:r, j in 0:r\n"
       "}",
       {},
       {{{c, r, r, h, w}, x}},
       result,
       o,
       {{"r", r}}});
}

TEST(LeftSide, C7_FlattensAndUnflattens) {
  const int64_t n = 5, m = 7;
  const Integers x = pattern(n * m, 90);
  expect_everywhere({"def f(int64(N,M) X) -> (O) { O(i*M + j) = X(i,j) }", {}, {{{n, m}, x}}, {{n * m}, x}, x});
  expect_everywhere({"def f(int64(N) X) -> (O) { O(i/7, i%7) = X(i) }", {}, {{{n * m}, x}}, {{n, m}, x}, x});
}

TEST(LeftSide, C7_ConstantsAndScalarsSayWhere) {
  const int64_t n = 6;
  const Integers x = pattern(n, 90);
  Integers ends(static_cast<size_t>(n), 7), row(static_cast<size_t>(3 * n), 7);
  ends.front() = x.back();
  ends.back() = x.front();
  std::copy(x.begin(), x.end(), row.begin() + n);
  expect_everywhere({"def f(int64(N) X) -> (int64(N) O) { O(0) = X(N - 1)\n O(N - 1) = X(0) }",
                     {},
                     {{{n}, x}},
                     {{n}, Integers(ends.size(), 7)},
                     ends});
  expect_everywhere({"def f(int64(N) X, int32 s) -> (int64(3,N) O) { O(s,i) = X(i) }",
                     {},
                     {{{n}, x}},
                     {{3, n}, Integers(row.size(), 7)},
                     row,
                     {{"s", 1}}});
}

TEST(LeftSide, C6_WhatIsPlacedIsReadBack) {
  const int64_t n = 20;
  const Integers x = pattern(n, 90);
  Integers o(static_cast<size_t>(2 * n));
  for (size_t i = 0; i < x.size(); ++i) o[2 * i] = x[i];
  for (size_t i = 0; i < x.size(); ++i) o[2 * i + 1] = o[2 * i] * 3;
  Integers sums(static_cast<size_t>(2 * n - 1));
  for (size_t i = 0; i < sums.size(); ++i) sums[i] = o[i] + o[i + 1];
  expect_everywhere(
      {"def f(int64(N) X) -> (O) {\n"
       "  T(2*i) = X(i)\n  T(2*i + 1) = T(2*i) * 3 where i in 0:N\n  O(i) = T(i) + T(i + 1)\n}",
       {},
       {{{n}, x}},
       {{2 * n - 1}, Integers(sums.size(), 7)},
       sums});
}

}  // namespace
}  // namespace tc::testing
