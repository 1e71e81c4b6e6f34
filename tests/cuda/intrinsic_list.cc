#include "tests/cuda/intrinsic_list.h"

#include "tc/lang/intrinsics.h"

namespace tc::cuda {
namespace {

using Halide::Type;

const std::vector<Type> kFloats = {Halide::Float(16), Halide::BFloat(16), Halide::Float(32), Halide::Float(64)};
const std::vector<Type> kIntegers = {Halide::Int(8),  Halide::Int(16),  Halide::Int(32),  Halide::Int(64),
                                     Halide::UInt(8), Halide::UInt(16), Halide::UInt(32), Halide::UInt(64)};

/// These become Min, Max and Select nodes.
bool is_node(std::string_view name) {
  for (const char* node : {"min", "max", "clamp", "relu", "select"}) {
    if (name == node) return true;
  }
  return false;
}

}  // namespace

std::vector<IntrinsicUse> all_intrinsic_uses() {
  std::vector<IntrinsicUse> uses;
  const Type int32 = Halide::Int(32);
  for (const lang::IntrinsicInfo& info : lang::all_intrinsics()) {
    if (is_node(info.name)) continue;
    const std::string name(info.name);
    const auto add = [&](const std::vector<Type>& types, auto arguments, auto result) {
      for (const Type type : types) uses.push_back({name, arguments(type), result(type)});
    };
    const auto same = [&](Type t) { return std::vector<Type>(info.min_arguments, t); };
    const auto itself = [](Type t) { return t; };
    const auto fixed = [](Type t) { return [t](Type) { return t; }; };
    switch (info.signature) {
      case lang::Signature::kFloat:
        add(kFloats, same, itself);
        break;
      case lang::Signature::kArithmetic:
        add(kFloats, same, itself);
        add(kIntegers, same, itself);
        break;
      case lang::Signature::kFloat32:
        add({Halide::Float(32)}, same, itself);
        break;
      case lang::Signature::kFloatToBool:
        add(kFloats, same, fixed(Halide::UInt(1)));
        break;
      case lang::Signature::kFloatToInt32:
        add(kFloats, same, fixed(int32));
        break;
      case lang::Signature::kFloatToInt64:
        add(kFloats, same, fixed(Halide::Int(64)));
        break;
      case lang::Signature::kFloatInt32:
        add(
            kFloats,
            [&](Type t) {
              return std::vector<Type>{t, int32};
            },
            itself);
        break;
      case lang::Signature::kInt32Float:
        add(
            kFloats,
            [&](Type t) {
              return std::vector<Type>{int32, t};
            },
            itself);
        break;
      case lang::Signature::kInteger:
      case lang::Signature::kShift:
        add(kIntegers, same, itself);
        break;
      case lang::Signature::kIntegerToInt32:
        add(kIntegers, same, fixed(int32));
        break;
      case lang::Signature::kSelect:
        break;
    }
  }
  return uses;
}

}  // namespace tc::cuda
