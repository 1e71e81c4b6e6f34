#include "tc/cpu/object.h"

#include <gtest/gtest.h>

#include <vector>

#include "tc/cpu/loader.h"

namespace tc::cpu {
namespace {

using namespace Halide;
using namespace Halide::Internal;

Expr index_of(const char* name) { return Variable::make(Int(32), name); }
Expr load(Type type, const std::string& buffer, Expr index) {
  return Load::make(type, buffer, index, {}, {}, const_true(type.lanes()), {});
}
Stmt store(const std::string& buffer, Expr value, Expr index) {
  return Store::make(buffer, value, index, {}, const_true(value.type().lanes()), {});
}
Stmt loop(const char* name, int extent, Stmt body, ForType type = ForType::Serial) {
  return For::make(name, 0, extent, type, DeviceAPI::None, body);
}

std::shared_ptr<const Loaded> build(const Kernel& kernel, const ObjectOptions& options = {}) {
  Result<Object> object = compile_object(kernel, options);
  EXPECT_TRUE(object.has_value()) << object.error().to_string();
  auto loaded = load_object(*object);
  EXPECT_TRUE(loaded.has_value()) << loaded.error().to_string();
  return *loaded;
}

TEST(Object, AddsTwoVectors) {
  Kernel kernel{
      "add",
      {buffer_argument("a", Float(32), 100), buffer_argument("b", Float(32), 100),
       buffer_argument("c", Float(32), 100)},
      loop("i", 100,
           store("c", load(Float(32), "a", index_of("i")) + load(Float(32), "b", index_of("i")), index_of("i")))};
  std::vector<float> a(100), b(100), c(100);
  for (int i = 0; i < 100; i++) a[i] = i, b[i] = 2 * i;
  void* arguments[] = {a.data(), b.data(), c.data()};
  ASSERT_EQ(build(kernel)->call(arguments), 0);
  for (int i = 0; i < 100; i++) EXPECT_EQ(c[i], 3 * i);
}

}  // namespace
}  // namespace tc::cpu
