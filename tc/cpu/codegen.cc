#include "tc/cpu/codegen.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Verifier.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include "tc/cpu/math.h"
#include "tc/cpu/moves.h"
#include "tc/cpu/runtime.h"
#include "tc/cpu/value_ops.h"
#include "tc/ir/halide_compat.h"
#include "tc/support/check.h"

namespace tc::cpu {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

/// Constant allocations up to this many bytes live on the stack.
constexpr int64_t kStackBytes = 16 * 1024;
/// Read past an internal allocation's end by Halide's strided vector loads.
constexpr int64_t kPaddingBytes = 64;

/// A function that is called from more places than this is made once: unrolled loops would repeat a hundred
/// instructions in each.
constexpr int kInlinedPlaces = 12;

ValueOps::Shared frequent_functions(const LoweredKernel& lowered) {
  class Count : public hi::IRVisitor {
   public:
    std::map<std::pair<std::string, int>, int> places;

   private:
    using IRVisitor::visit;
    void visit(const hi::Call* op) override {
      if (op->call_type == hi::Call::PureExtern && is_math_function(op->name)) {
        ++places[{op->name, op->type.lanes()}];
      }
      IRVisitor::visit(op);
    }
  } count;
  for (const hi::LoweredFunc& f : lowered.functions) f.body.accept(&count);
  ValueOps::Shared result;
  for (const auto& [function, places] : count.places) {
    if (places > kInlinedPlaces) result.insert(function);
  }
  return result;
}

class KernelCodeGen : public hi::CodeGen_Posix {
 public:
  KernelCodeGen(const CodeTarget& target, llvm::LLVMContext& context)
      : CodeGen_Posix(target.halide.with_feature(Halide::Target::NoRuntime).with_feature(Halide::Target::LargeBuffers)),
        code_target_(target) {
    set_context(context);
  }

  std::unique_ptr<llvm::Module> generate(const Kernel& kernel, const LoweredKernel& lowered,
                                         const llvm::DataLayout& layout) {
    init_context();
    builder->clearFastMathFlags();
    builder->setDefaultFPMathTag(nullptr);
    module = std::make_unique<llvm::Module>(kernel.name, *context);
    module->setTargetTriple("x86_64-unknown-linux-gnu");
    module->setDataLayout(layout);
    declare_runtime();
    ops_ = std::make_unique<ValueOps>(*builder, *module, code_target_, frequent_functions(lowered));
    declare_functions(kernel, lowered);
    for (const hi::LoweredFunc& f : lowered.functions) compile_func(f, f.name, symbols_.at(f.name));
    add_entry(kernel);
    TC_CHECK(!llvm::verifyModule(*module, &llvm::errs()), "the module of '{}' is not valid", kernel.name);
    ops_.reset();
    return std::move(module);
  }

 protected:
  using CodeGen_Posix::visit;

#if HALIDE_VERSION_MAJOR >= 15
  std::string mcpu_target() const override { return code_target_.cpu; }
  std::string mcpu_tune() const override { return code_target_.cpu; }
#else
  std::string mcpu() const override { return code_target_.cpu; }
#endif
  std::string mattrs() const override { return code_target_.features; }
  bool use_soft_float_abi() const override { return false; }
  int native_vector_bits() const override { return code_target_.vector_bits; }

  void visit(const hi::Call* op) override {
    if (op->name == kStreamFunction) return stream(op->args[0], op->args[1]);
    if (op->name == kStreamFenceFunction) return stream_fence();
    if (op->call_type != hi::Call::PureExtern || op->type.is_handle()) return CodeGen_Posix::visit(op);
    std::vector<Operand> operands;
    for (const Expr& arg : op->args) operands.push_back({codegen(arg), arg.type()});
    value = ops_->emit(op->name, op->type, operands);
  }

  /// Floats are reduced as a tree; Halide's way would be one by one, and would lose NaNs.
  void codegen_vector_reduce(const hi::VectorReduce* op, const Expr& init) override {
    if (!op->type.is_float() || op->type.lanes() != 1) return CodeGen_Posix::codegen_vector_reduce(op, init);
    const char* name = op->op == hi::VectorReduce::Add   ? "tc.add"
                       : op->op == hi::VectorReduce::Mul ? "tc.mul"
                       : op->op == hi::VectorReduce::Min ? "tc.min"
                                                         : "tc.max";
    llvm::Value* result = ops_->reduce(name, codegen(op->value), op->value.type());
    if (init.defined()) result = ops_->emit(name, op->type, {{codegen(init), op->type}, {result, op->type}});
    value = result;
  }

  /// Sizes in 64 bits: Halide's own path holds them in 32.
  void visit(const hi::Allocate* op) override {
    int64_t element_bytes = op->type.bytes() * op->type.lanes(), bytes = element_bytes;
    bool is_constant = true;
    for (const Expr& extent : op->extents) {
      const int64_t* constant = ir::constant_int(extent);
      is_constant = is_constant && constant && !__builtin_mul_overflow(bytes, *constant, &bytes);
    }
    if (is_constant && bytes <= kStackBytes && op->memory_type != Halide::MemoryType::Heap) {
      return CodeGen_Posix::visit(op);
    }

    llvm::Value* size = allocation_bytes(op->extents, element_bytes);
    llvm::Value* pointer = builder->CreateCall(module->getFunction("halide_malloc"), {get_user_context(), size});
    create_assertion(builder->CreateIsNotNull(pointer), Expr(), builder->getInt32(kOutOfMemory));
    llvm::Function* free_function = module->getFunction("halide_free");
    llvm::Value* slot = register_destructor(free_function, pointer, OnError);
    sym_push(op->name, builder->CreatePointerCast(pointer, llvm_type_of(op->type)->getPointerTo()));
    codegen(op->body);
    trigger_destructor(free_function, slot);
    sym_pop(op->name);
  }

 private:
  /// See kStreamFunction.
  void stream(const Expr& to, const Expr& vector) {
    llvm::Value* stored = codegen(vector);
    llvm::Value* address = builder->CreateIntToPtr(codegen(to), stored->getType()->getPointerTo());
    const llvm::Align alignment(static_cast<uint64_t>(vector.type().bytes()) * vector.type().lanes());
    llvm::StoreInst* store = builder->CreateAlignedStore(stored, address, alignment);
    llvm::Metadata* one = llvm::ConstantAsMetadata::get(builder->getInt32(1));
    store->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(*context, one));
    value = builder->getInt32(0);
  }

  void stream_fence() {
    builder->CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
    value = builder->getInt32(0);
  }

  /// The product of the extents and the padding; the largest number, which no allocation grants, on overflow.
  llvm::Value* allocation_bytes(const std::vector<Expr>& extents, int64_t element_bytes) {
    llvm::Value* size = builder->getInt64(element_bytes);
    llvm::Value* overflows = builder->getFalse();
    for (const Expr& extent : extents) {
      llvm::Value* factor = codegen(Halide::cast<int64_t>(extent));
      llvm::Value* product = builder->CreateBinaryIntrinsic(llvm::Intrinsic::smul_with_overflow, size, factor);
      size = builder->CreateExtractValue(product, 0);
      overflows = builder->CreateOr(overflows, builder->CreateExtractValue(product, 1));
    }
    llvm::Value* padded = builder->CreateAdd(size, builder->getInt64(kPaddingBytes));
    return builder->CreateSelect(overflows, builder->getInt64(-1), padded);
  }

  llvm::Function* declare(llvm::Type* result, const char* name, std::vector<llvm::Type*> parameters) {
    auto* type = llvm::FunctionType::get(result, parameters, false);
    auto* f = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module.get());
    f->addFnAttr(llvm::Attribute::NoUnwind);
    return f;
  }

  /// The functions that Halide's code generator looks up by name.
  void declare_runtime() {
    llvm::Type* pointer = i8_t->getPointerTo();
    llvm::Type* task = llvm::FunctionType::get(i32_t, {pointer, i32_t, pointer}, false)->getPointerTo();
    declare(i32_t, "halide_do_par_for", {pointer, task, i32_t, i32_t, pointer});
    declare(pointer, "halide_malloc", {pointer, i64_t})->setReturnDoesNotAlias();
    llvm::Function* free_function = declare(void_t, "halide_free", {pointer, pointer});
    // Never called: pseudostack allocations are not made. Its type is asked for.
    pseudostack_slot_t_type = llvm::StructType::create(*context, "struct.halide_pseudostack_slot_t");
    halide_buffer_t_type = llvm::StructType::create(*context, "struct.halide_buffer_t");

    llvm::Function* destroy =
        declare(void_t, "call_destructor", {pointer, free_function->getType(), pointer->getPointerTo(), i1_t});
    destroy->setLinkage(llvm::Function::InternalLinkage);
    destroy->addFnAttr(llvm::Attribute::AlwaysInline);
    auto* entry = llvm::BasicBlock::Create(*context, "entry", destroy);
    auto* call = llvm::BasicBlock::Create(*context, "call", destroy);
    auto* done = llvm::BasicBlock::Create(*context, "done", destroy);
    builder->SetInsertPoint(entry);
    llvm::Value* object = builder->CreateLoad(pointer, destroy->getArg(2));
    builder->CreateStore(llvm::Constant::getNullValue(pointer), destroy->getArg(2));
    builder->CreateCondBr(builder->CreateAnd(builder->CreateIsNotNull(object), destroy->getArg(3)), call, done);
    builder->SetInsertPoint(call);
    builder->CreateCall(free_function->getFunctionType(), destroy->getArg(1), {destroy->getArg(0), object});
    builder->CreateBr(done);
    builder->SetInsertPoint(done);
    builder->CreateRetVoid();
  }

  /// Halide's names of parallel loops come from a counter of the process; ours count within the kernel.
  void declare_functions(const Kernel& kernel, const LoweredKernel& lowered) {
    for (size_t i = 0; i < lowered.functions.size(); i++) {
      const hi::LoweredFunc& f = lowered.functions[i];
      bool is_kernel = i + 1 == lowered.functions.size();
      std::string symbol = is_kernel ? kernel.name : kernel.name + ".loop" + std::to_string(i);
      std::vector<llvm::Type*> parameters;
      for (const hi::LoweredArgument& arg : f.args) parameters.push_back(llvm_type_of(arg.type));
      llvm::Function* function = declare(i32_t, symbol.c_str(), parameters);
      function->setLinkage(llvm::Function::InternalLinkage);
      function->addFnAttr("reciprocal-estimates", "none");
      symbols_[f.name] = symbol;
      sym_push("::" + f.name, function);
      function->setName(symbol);
      if (is_kernel) add_argument_attributes(kernel, function);
    }
  }

  static void add_argument_attributes(const Kernel& kernel, llvm::Function* function) {
    function->addFnAttr(llvm::Attribute::NoInline);
    for (size_t i = 0; i < kernel.arguments.size(); i++) {
      const KernelArgument& argument = kernel.arguments[i];
      if (!argument.is_buffer) continue;
      if (kernel.no_alias) function->addParamAttr(i, llvm::Attribute::NoAlias);
      if (argument.elements > 0) function->addDereferenceableParamAttr(i, argument.elements * argument.type.bytes());
    }
  }

  void add_entry(const Kernel& kernel) {
    llvm::Type* pointer = i8_t->getPointerTo();
    llvm::Function* entry = declare(i32_t, entry_symbol(kernel.name).c_str(), {pointer->getPointerTo()});
    builder->SetInsertPoint(llvm::BasicBlock::Create(*context, "entry", entry));
    llvm::Function* body = module->getFunction(kernel.name);
    std::vector<llvm::Value*> arguments;
    for (size_t i = 0; i < kernel.arguments.size(); i++) {
      llvm::Value* address = builder->CreateLoad(pointer, builder->CreateConstGEP1_64(pointer, entry->getArg(0), i));
      llvm::Type* type = body->getArg(i)->getType();
      if (!kernel.arguments[i].is_buffer) {
        address = builder->CreateLoad(type, builder->CreatePointerCast(address, type->getPointerTo()));
      }
      arguments.push_back(address);
    }
    builder->CreateRet(builder->CreateCall(body, arguments));
  }

  const CodeTarget& code_target_;
  std::unique_ptr<ValueOps> ops_;
  std::map<std::string, std::string> symbols_;  // of functions, by Halide's name
};

/// Halide says in metadata that buffers of different names do not overlap; without the caller's promise that is
/// taken back.
void drop_alias_metadata(llvm::Module& module) {
  for (llvm::Function& f : module) {
    for (llvm::BasicBlock& block : f) {
      for (llvm::Instruction& instruction : block) instruction.setMetadata(llvm::LLVMContext::MD_tbaa, nullptr);
    }
  }
}

/// Widens masked accesses to a power of two of lanes, the others masked off: of other numbers of lanes LLVM 14 makes
/// types without a size on processors that have masks ("Invalid size request on a scalable vector").
void widen_masked_accesses(llvm::Module& module) {
  std::vector<llvm::IntrinsicInst*> narrow;
  for (llvm::Function& f : module) {
    for (llvm::Instruction& instruction : llvm::instructions(f)) {
      auto* access = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
      if (access == nullptr) continue;
      const bool is_load = access->getIntrinsicID() == llvm::Intrinsic::masked_load;
      if (!is_load && access->getIntrinsicID() != llvm::Intrinsic::masked_store) continue;
      auto* type = llvm::cast<llvm::FixedVectorType>(is_load ? access->getType() : access->getArgOperand(0)->getType());
      if (!llvm::isPowerOf2_32(type->getNumElements())) narrow.push_back(access);
    }
  }
  for (llvm::IntrinsicInst* access : narrow) {
    llvm::IRBuilder<> builder(access);
    const bool is_load = access->getIntrinsicID() == llvm::Intrinsic::masked_load;
    llvm::Value* value = access->getArgOperand(is_load ? 3 : 0);
    auto* type = llvm::cast<llvm::FixedVectorType>(value->getType());
    const auto lanes = static_cast<int>(type->getNumElements());
    const auto wide_lanes = static_cast<int>(llvm::NextPowerOf2(lanes));
    const auto widened = [&](llvm::Value* vector) {  // with lanes of zeros
      std::vector<int> from(wide_lanes);
      for (int lane = 0; lane < wide_lanes; ++lane) from[lane] = std::min(lane, lanes);
      return builder.CreateShuffleVector(vector, llvm::Constant::getNullValue(vector->getType()), from);
    };
    auto* wide = llvm::FixedVectorType::get(type->getElementType(), wide_lanes);
    llvm::Value* address = builder.CreatePointerCast(access->getArgOperand(is_load ? 0 : 1), wide->getPointerTo());
    const auto* alignment = llvm::cast<llvm::ConstantInt>(access->getArgOperand(is_load ? 1 : 2));
    llvm::Value* mask = widened(access->getArgOperand(is_load ? 2 : 3));
    llvm::CallInst* made =
        is_load ? builder.CreateMaskedLoad(wide, address, alignment->getAlignValue(), mask, widened(value))
                : builder.CreateMaskedStore(widened(value), address, alignment->getAlignValue(), mask);
    made->setAAMetadata(access->getAAMetadata());
    if (is_load) {
      std::vector<int> kept(lanes);
      std::iota(kept.begin(), kept.end(), 0);
      access->replaceAllUsesWith(builder.CreateShuffleVector(made, kept));
    }
    access->eraseFromParent();
  }
}

/// Rule T5 holds because no instruction may assume anything of its operands.
void check_no_fast_math(const llvm::Module& module) {
  for (const llvm::Function& f : module) {
    for (const llvm::BasicBlock& block : f) {
      for (const llvm::Instruction& instruction : block) {
        const bool fast = llvm::isa<llvm::FPMathOperator>(instruction) && instruction.getFastMathFlags().any();
        TC_CHECK(!fast, "an instruction '{}' with fast-math flags in {}", instruction.getOpcodeName(),
                 f.getName().str());
      }
    }
  }
}

}  // namespace

std::string entry_symbol(const std::string& kernel_name) { return "tc_kernel_" + kernel_name; }

std::unique_ptr<llvm::Module> generate_module(const Kernel& kernel, const LoweredKernel& lowered,
                                              const CodeTarget& target, const llvm::DataLayout& layout,
                                              llvm::LLVMContext& context) {
  KernelCodeGen generator(target, context);
  std::unique_ptr<llvm::Module> module = generator.generate(kernel, lowered, layout);
  if (!kernel.no_alias) drop_alias_metadata(*module);
  widen_masked_accesses(*module);
  check_no_fast_math(*module);
  return module;
}

}  // namespace tc::cpu
