// Reads 1,797 handwritten digits with the perceptron of mlp3.tc: classify FOLDER
// A user's program: it sees only what is installed.
#include <tc/api/tc.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

using tc::api::CompiledKernel;
using tc::api::Tensor;
using tc::api::TensorSpec;

constexpr int64_t kImages = 1797;
constexpr int64_t kPixels = 64;  // 8 x 8, row by row
constexpr int64_t kHeldOut = 5;  // train.py holds out the last of every five images
constexpr int kRuns = 200;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The elements of a .npy file of version 1 that must have this type and shape.
tc::Result<Tensor> load(const std::string& path, const TensorSpec& spec) {
  const std::string bytes = read_file(path);
  std::string shape;
  for (int64_t extent : spec.shape) shape += (shape.empty() ? "" : ", ") + std::to_string(extent);
  if (spec.shape.size() == 1) shape += ",";
  const std::string type = spec.type == tc::ScalarType::kUInt8 ? "|u1" : "<f4";
  const std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  const auto size = static_cast<size_t>(spec.span_bytes());
  if (bytes.size() <= size || bytes.compare(10, header.size(), header) != 0) {
    return tl::unexpected(tc::Error("'" + path + "' is no .npy file of " + spec.to_string()));
  }
  auto tensor = Tensor::allocate(spec);
  if (tensor) std::copy_n(bytes.end() - static_cast<std::ptrdiff_t>(size), size, tensor->data_as<char>());
  return tensor;
}

TensorSpec floats(std::vector<int64_t> shape) { return {.type = tc::ScalarType::kFloat32, .shape = std::move(shape)}; }

TensorSpec bytes(std::vector<int64_t> shape) { return {.type = tc::ScalarType::kUInt8, .shape = std::move(shape)}; }

tc::Result<CompiledKernel> compile_perceptron(const std::string& folder) {
  tc::api::Request request;
  request.inputs = {bytes({kImages, kPixels}),
                    floats({128, kPixels}),
                    floats({128}),
                    floats({64, 128}),
                    floats({64}),
                    floats({10, 64}),
                    floats({10})};
  return tc::api::compile(read_file(folder + "/mlp3.tc"), request);
}

/// Some images side by side as text, and below each what it was read as.
void print_digits(const std::vector<int64_t>& rows, const uint8_t* image, const int32_t* digit, const uint8_t* label) {
  const char shades[] = " .:-=+*#%@";
  for (int64_t y = 0; y < 8; ++y) {
    for (int64_t row : rows) {
      std::printf("  ");
      for (int64_t x = 0; x < 8; ++x) {
        const char shade = shades[image[row * kPixels + y * 8 + x] * 9 / 16];
        std::printf("%c%c", shade, shade);
      }
    }
    std::printf("\n");
  }
  for (int64_t row : rows) {
    std::string caption = "read as " + std::to_string(digit[row]);
    if (digit[row] != label[row]) caption += ", it is " + std::to_string(label[row]);
    std::printf("  %-16s", caption.c_str());
  }
  std::printf("\n\n");
}

/// How many of the images that were, or were not, trained on are read as their label says.
void print_accuracy(bool held_out, const int32_t* digit, const uint8_t* label) {
  int count = 0, right = 0;
  for (int64_t row = 0; row < kImages; ++row) {
    if ((row % kHeldOut == kHeldOut - 1) != held_out) continue;
    ++count;
    right += digit[row] == label[row];
  }
  std::printf("%s: %d of %d right, accuracy %.4f\n", held_out ? "images never trained on" : "images of training", right,
              count, static_cast<double>(right) / count);
}

/// The first held-out images, and the first that is misread.
std::vector<int64_t> choose_shown(const int32_t* digit, const uint8_t* label) {
  std::vector<int64_t> rows;
  for (int64_t row = kHeldOut - 1; row < kImages; row += kHeldOut) {
    if (rows.size() < 4 || digit[row] != label[row]) rows.push_back(row);
    if (rows.size() > 4) break;
  }
  return rows;
}

tc::Result<void> classify(const std::string& folder) {
  auto kernel = compile_perceptron(folder);
  if (!kernel) return tl::unexpected(kernel.error());
  const std::string names[] = {"image", "w1", "b1", "w2", "b2", "w3", "b3"};
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < kernel->inputs().size(); ++i) {
    auto input = load(folder + "/" + names[i] + ".npy", kernel->inputs()[i]);
    if (!input) return tl::unexpected(input.error());
    inputs.push_back(std::move(*input));
  }
  auto truth = load(folder + "/label.npy", bytes({kImages}));
  if (!truth) return tl::unexpected(truth.error());
  auto outputs = kernel->allocate_outputs();
  if (!outputs) return tl::unexpected(outputs.error());
  auto profile = kernel->profile(inputs, *outputs, {}, kRuns);
  if (!profile) return tl::unexpected(profile.error());

  const auto* digit = (*outputs)[1].data_as<int32_t>();
  const auto* label = truth->data_as<uint8_t>();
  print_digits(choose_shown(digit, label), inputs[0].data_as<uint8_t>(), digit, label);
  print_accuracy(false, digit, label);
  print_accuracy(true, digit, label);
  std::printf("%lld images in %.0f us (median of %d runs): %.0f images a second\n", static_cast<long long>(kImages),
              profile->median_us, kRuns, 1e6 * static_cast<double>(kImages) / profile->median_us);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: classify FOLDER\n");
    return 1;
  }
  auto done = classify(argv[1]);
  if (!done) std::fprintf(stderr, "%s\n", done.error().to_string().c_str());
  return done ? 0 : 1;
}
