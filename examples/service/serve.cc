// A service that reads handwritten digits with kernels that were compiled before: serve CACHE WEIGHTS
// Each line of standard input is one image or several, 64 numbers from 0 to 16 each; the answer is a line with a digit
// for each image, or why there is none. Nothing is compiled here: a number of images that the cache has no kernel for
// is an error. A user's program: it sees only what is installed.
#include <tc/api/tc.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace {

using tc::api::CompiledKernel;
using tc::api::Engine;
using tc::api::Tensor;
using tc::api::TensorSpec;

constexpr int64_t kPixels = 64;  // 8 x 8, row by row

/// The elements of a .npy file, which stand at its end.
tc::Result<Tensor> load(const std::string& path, std::vector<int64_t> shape) {
  const TensorSpec spec{.type = tc::ScalarType::kFloat32, .shape = std::move(shape)};
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const auto size = static_cast<size_t>(spec.span_bytes());
  if (bytes.size() <= size) return tl::unexpected(tc::Error("'" + path + "' is no .npy file of " + spec.to_string()));
  auto tensor = Tensor::allocate(spec);
  if (tensor) std::copy_n(bytes.end() - static_cast<std::ptrdiff_t>(size), size, tensor->data_as<char>());
  return tensor;
}

struct Service {
  Engine engine;
  std::vector<Tensor> inputs;  ///< the images of a line, then weights and biases

  tc::Result<std::string> answer(const std::string& line) {
    std::istringstream words(line);
    const std::vector<int> pixels{std::istream_iterator<int>(words), {}};
    if (pixels.empty() || pixels.size() % kPixels != 0 || !words.eof()) {
      return tl::unexpected(tc::Error("a line has 64 numbers for each image"));
    }
    const auto images = static_cast<int64_t>(pixels.size()) / kPixels;
    auto image = Tensor::allocate({.type = tc::ScalarType::kUInt8, .shape = {images, kPixels}});
    if (!image) return tl::unexpected(image.error());
    std::copy(pixels.begin(), pixels.end(), image->data_as<uint8_t>());
    inputs[0] = std::move(*image);

    // The first time from the cache's file, then from memory: microseconds.
    tc::api::Request request{.entry = "mlp3"};
    for (const Tensor& input : inputs) request.inputs.emplace_back(input.spec());
    auto kernel = engine.compile(request);
    if (!kernel) return tl::unexpected(kernel.error());
    auto outputs = kernel->allocate_outputs();
    if (!outputs) return tl::unexpected(outputs.error());
    if (auto done = kernel->run(inputs, *outputs); !done) return tl::unexpected(done.error());
    std::string digits;
    for (int64_t i = 0; i < images; ++i) {
      digits += (i > 0 ? " " : "") + std::to_string((*outputs)[1].data_as<int32_t>()[i]);
    }
    return digits;
  }
};

tc::Result<Service> open_service(const std::string& cache, const std::string& weights) {
  const auto warn = [](const std::string& sentence) { std::cerr << sentence << "\n"; };
  auto engine = Engine::production(cache, {.on_warning = warn});
  if (!engine) return tl::unexpected(engine.error());
  Service service{std::move(*engine), {}};
  service.inputs.resize(1);
  const std::pair<const char*, std::vector<int64_t>> files[] = {
      {"w1", {128, kPixels}}, {"b1", {128}}, {"w2", {64, 128}}, {"b2", {64}}, {"w3", {10, 64}}, {"b3", {10}}};
  for (const auto& [name, shape] : files) {
    auto tensor = load(weights + "/" + name + ".npy", shape);
    if (!tensor) return tl::unexpected(tensor.error());
    service.inputs.push_back(std::move(*tensor));
  }
  return service;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: serve CACHE WEIGHTS\n");
    return 1;
  }
  auto service = open_service(argv[1], argv[2]);
  if (!service) {
    std::fprintf(stderr, "%s", service.error().to_string().c_str());
    return 1;
  }
  for (std::string line; std::getline(std::cin, line);) {
    const auto answer = service->answer(line);
    std::cout << (answer ? *answer + "\n" : answer.error().to_string()) << std::flush;
  }
  return 0;
}
