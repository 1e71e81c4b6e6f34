#pragma once

#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/Target/TargetMachine.h>

/// What differs between the versions of LLVM that the sources build with, 14 and 19, and not between those of Halide.
namespace tc::cpu {

#if LLVM_VERSION_MAJOR >= 18
inline constexpr llvm::CodeGenOptLevel kAggressive = llvm::CodeGenOptLevel::Aggressive;
inline constexpr llvm::CodeGenFileType kObjectFile = llvm::CodeGenFileType::ObjectFile;
inline constexpr llvm::CodeGenFileType kAssemblyFile = llvm::CodeGenFileType::AssemblyFile;
#else
inline constexpr llvm::CodeGenOpt::Level kAggressive = llvm::CodeGenOpt::Aggressive;
inline constexpr llvm::CodeGenFileType kObjectFile = llvm::CGFT_ObjectFile;
inline constexpr llvm::CodeGenFileType kAssemblyFile = llvm::CGFT_AssemblyFile;
#endif

#if LLVM_VERSION_MAJOR >= 16
using SectionAlignment = llvm::Align;
#else
using SectionAlignment = uint32_t;
#endif

#if LLVM_VERSION_MAJOR >= 19
using Reported = const llvm::DiagnosticInfo*;
inline const llvm::DiagnosticInfo& info_of(Reported reported) { return *reported; }
#else
using Reported = const llvm::DiagnosticInfo&;
inline const llvm::DiagnosticInfo& info_of(Reported reported) { return reported; }
#endif

}  // namespace tc::cpu
