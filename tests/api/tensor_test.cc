#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "tc/api/layout.h"
#include "tests/api/tensors.h"

namespace tc::api {
namespace {

using testing::error_of;
using testing::floats;
using testing::take;

TEST(TensorSpec, CountsElementsAndBytes) {
  EXPECT_EQ(floats({3, 4}).elements(), 12);
  EXPECT_EQ(floats({}).elements(), 1);
  EXPECT_EQ(floats({INT64_MAX, 0, INT64_MAX}).elements(), 0);
  EXPECT_EQ(floats({int64_t{1} << 32, int64_t{1} << 32}).elements(), -1);
  EXPECT_EQ(floats({3, 4}).span_bytes(), 48);
  EXPECT_EQ(floats({3, 4}, {10, 1}).span_bytes(), (2 * 10 + 3 + 1) * 4);
  EXPECT_EQ(floats({3, 4}, {-10, 1}).span_bytes(), (2 * 10 + 3 + 1) * 4);
  EXPECT_EQ(floats({INT64_MAX}).span_bytes(), -1);
}

TEST(TensorSpec, SaysItsStridesUnlessTheyAreDense) {
  EXPECT_EQ(floats({3, 4}).to_string(), "float32(3, 4)");
  EXPECT_EQ(floats({3, 4}, {4, 1}).to_string(), "float32(3, 4)");
  EXPECT_EQ(floats({3, 4}, {1, 3}).to_string(), "float32(3, 4) strides (1, 3)");
  EXPECT_EQ(floats({3, 1}, {1, 99}).to_string(), "float32(3, 1)");
  EXPECT_EQ(floats({}).to_string(), "float32()");
}

TEST(Layout, ElementsAreApartForSlicesOfDenseTensors) {
  const std::vector<int64_t> shape = {3, 4};
  EXPECT_TRUE(elements_are_apart(shape, std::vector<int64_t>{4, 1}));
  EXPECT_TRUE(elements_are_apart(shape, std::vector<int64_t>{1, 3}));
  EXPECT_TRUE(elements_are_apart(shape, std::vector<int64_t>{-8, 2}));
  EXPECT_FALSE(elements_are_apart(shape, std::vector<int64_t>{0, 1}));
  EXPECT_FALSE(elements_are_apart(shape, std::vector<int64_t>{3, 1}));
  EXPECT_TRUE(elements_are_apart(std::vector<int64_t>{1, 4}, std::vector<int64_t>{0, 1}));
  EXPECT_TRUE(elements_are_apart(std::vector<int64_t>{0, 4}, std::vector<int64_t>{0, 0}));
}

TEST(Tensor, IsAllocatedZeroedAndAligned) {
  const Tensor tensor = take(Tensor::allocate(floats({5, 7})));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data()) % 64, 0U);
  EXPECT_EQ(testing::elements_of<float>(tensor), std::vector<float>(35, 0.0F));
  EXPECT_EQ(tensor.spec(), floats({5, 7}, {7, 1}));
}

TEST(Tensor, IsAllocatedWithStrides) {
  const Tensor tensor = take(Tensor::allocate(floats({2, 3}, {1, -2})));
  tensor.data_as<float>()[-4] = 1;  // element (0, 2), the lowest
  tensor.data_as<float>()[1] = 1;   // element (1, 0), the highest
}

TEST(Tensor, RefusesWhatCannotBeAllocated) {
  EXPECT_EQ(error_of(Tensor::allocate(floats({2, 3}, {1, 1}))),
            "error: the strides of a tensor float32(2, 3) strides (1, 1) put several of its elements at one address\n");
  EXPECT_EQ(error_of(Tensor::allocate(floats({2, -3}))), "error: a tensor float32(2, -3) has an extent of -3\n");
  EXPECT_EQ(error_of(Tensor::allocate(floats({2, 3}, {1}))), "error: a tensor has 2 dimensions but 1 stride\n");
  EXPECT_EQ(error_of(Tensor::allocate(floats({INT64_MAX}))),
            "error: a tensor float32(9223372036854775807) has more bytes than 64 bits can count\n");
  const std::string error = error_of(Tensor::allocate(floats({int64_t{1} << 58})));
  EXPECT_TRUE(error.starts_with("error: a tensor float32(288230376151711744) takes 1.0 EiB; ")) << error;
}

TEST(Tensor, ReleasedToDlpackIsFreedByItsDeleter) {
  Tensor tensor = testing::tensor_of<float>(floats({2}), {1, 2});
  DLManagedTensor* managed = tensor.release();
  EXPECT_TRUE(tensor.empty());
  EXPECT_EQ(static_cast<float*>(managed->dl_tensor.data)[1], 2);
  EXPECT_EQ(managed->dl_tensor.shape[0], 2);
  managed->deleter(managed);
}

int deleted = 0;

TEST(Tensor, AdoptedIsDeletedOnce) {
  float data[2] = {1, 2};
  int64_t shape[1] = {2};
  deleted = 0;
  DLManagedTensor managed = {};
  managed.dl_tensor = {.data = data,
                       .device = {kDLCPU, 0},
                       .ndim = 1,
                       .dtype = to_dlpack(ScalarType::kFloat32),
                       .shape = shape,
                       .strides = nullptr,
                       .byte_offset = 4};
  managed.deleter = [](DLManagedTensor*) { ++deleted; };
  {
    Tensor tensor = Tensor::adopt(&managed);
    const Tensor moved = std::move(tensor);
    EXPECT_EQ(*moved.data_as<float>(), 2);  // behind byte_offset
    EXPECT_EQ(deleted, 0);
  }
  EXPECT_EQ(deleted, 1);
}

TEST(Tensor, AdoptsVersionedTensorsOfVersionOne) {
  float data[2] = {1, 2};
  int64_t shape[1] = {2};
  deleted = 0;
  DLManagedTensorVersioned managed = {};
  managed.version = {1, 7};
  managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  managed.dl_tensor = {.data = data,
                       .device = {kDLCPU, 0},
                       .ndim = 1,
                       .dtype = to_dlpack(ScalarType::kFloat32),
                       .shape = shape,
                       .strides = nullptr,
                       .byte_offset = 0};
  managed.deleter = [](DLManagedTensorVersioned*) { ++deleted; };
  EXPECT_TRUE(take(Tensor::adopt(&managed)).read_only());
  EXPECT_EQ(deleted, 1);
  managed.version = {2, 0};
  EXPECT_EQ(error_of(Tensor::adopt(&managed)), "error: a tensor of DLPack version 2.0; versions 1.x are understood\n");
  EXPECT_EQ(deleted, 2);
}

TEST(Tensor, GoesThroughVersionedDlpackAndBack) {
  Tensor tensor = testing::tensor_of<float>(floats({2, 2}), {1, 2, 3, 4});
  const Tensor back = take(Tensor::adopt(tensor.release_versioned()));
  EXPECT_FALSE(back.read_only());
  EXPECT_EQ(testing::elements_of<float>(back), (std::vector<float>{1, 2, 3, 4}));
}

TEST(Dlpack, EveryElementTypeHasACode) {
  for (int i = 0; i < kScalarTypes; ++i) {
    const auto type = static_cast<ScalarType>(i);
    int64_t shape[1] = {3};
    const DLTensor tensor = {.data = nullptr,
                             .device = {kDLCPU, 0},
                             .ndim = 1,
                             .dtype = to_dlpack(type),
                             .shape = shape,
                             .strides = nullptr,
                             .byte_offset = 0};
    EXPECT_EQ(take(spec_of(tensor)).type, type) << name_of(type);
  }
}

TEST(Dlpack, RefusesWhatTheLanguageDoesNotHave) {
  int64_t shape[1] = {-3};
  DLTensor tensor = {.data = nullptr,
                     .device = {kDLCPU, 0},
                     .ndim = 1,
                     .dtype = {kDLComplex, 64, 1},
                     .shape = shape,
                     .strides = nullptr,
                     .byte_offset = 0};
  EXPECT_EQ(error_of(spec_of(tensor)),
            "error: a tensor of DLPack type code 5, 64 bits, 1 lanes has no type in the language\n");
  tensor.dtype = {kDLFloat, 32, 4};
  EXPECT_EQ(error_of(spec_of(tensor)),
            "error: a tensor of DLPack type code 2, 32 bits, 4 lanes has no type in the language\n");
  tensor.dtype = to_dlpack(ScalarType::kInt8);
  EXPECT_EQ(error_of(spec_of(tensor)), "error: a tensor's extent in dimension 0 is -3, which is negative\n");
}

}  // namespace
}  // namespace tc::api
