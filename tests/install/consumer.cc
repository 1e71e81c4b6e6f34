// A user's program in C++: a matrix times a vector.
#include <tc/api/tc.h>

#include <iostream>
#include <vector>

int main() {
  using tc::api::Tensor;
  using tc::api::TensorSpec;
  const char* text = "def mv(float(M,K) A, float(K) x) -> (y) { y(m) +=! A(m,k) * x(k) }";
  auto kernel = tc::api::compile(text, {.inputs = {TensorSpec{.shape = {2, 3}}, TensorSpec{.shape = {3}}}});
  if (!kernel) {
    std::cerr << kernel.error().to_string();
    return 1;
  }
  std::vector<Tensor> inputs;
  for (const auto& spec : kernel->inputs()) {
    auto tensor = Tensor::allocate(spec);
    if (!tensor) {
      std::cerr << tensor.error().to_string();
      return 1;
    }
    for (int64_t i = 0; i < spec.elements(); ++i) tensor->data_as<float>()[i] = static_cast<float>(i + 1);
    inputs.push_back(std::move(*tensor));
  }
  auto outputs = kernel->allocate_outputs();
  auto done = outputs ? kernel->run(inputs, *outputs) : tl::unexpected(outputs.error());
  if (!done) {
    std::cerr << done.error().to_string();
    return 1;
  }
  const auto* y = outputs->front().data_as<float>();
  std::cout << "y = " << y[0] << " " << y[1] << "\n";
  return y[0] == 14 && y[1] == 32 ? 0 : 1;
}
