#pragma once

#include "tc/api/tc.h"
#include "tc/compile/pipeline.h"
#include "tc/lang/instantiate.h"

/// Between the caller's words and the pipeline's.
namespace tc::api {

/// The settings of a request for a def. Errors: too many tensors; types that the text does not declare; strides that
/// are negative, do not fit the rank, or let two elements of a result share memory; a scalar that the def does not have
/// (with the nearest) or that its type cannot hold; options or a budget out of bounds.
Result<compile::Settings> settings_of(const Request& request, const ir::Program& program);

/// The types that a request decides for a generic def (T7): those it gives, those in the name of an instance that is
/// its entry, those of its tensors. Errors: none or several for one variable.
Result<lang::TypeArguments> types_of(const Request& request, const lang::Definition& generic, const std::string& entry);

/// The sizes of the def that have no value and are in no extent of a tensor that is given, in the def's order.
std::vector<std::string> open_sizes(const compile::Settings& settings, const ir::Program& program);

/// Holds if there are no open_sizes(). The error names all of them.
Result<void> check_sizes(const compile::Settings& settings, const ir::Program& program);

/// Types, shapes and strides of a specialised Program's arguments. Proofs of which results are written in full end with
/// the time of the compilation, whose last passes have just run.
Specs specs_of(const compile::Settings& settings, const compile::Compilation& compilation);

/// The same of a Program and the values of its sizes, which are none if it is specialised. The budget's time is that of
/// the proofs.
Specs specs_of(const compile::Settings& settings, const ir::Program& program, const ir::Bindings& bindings = {});

/// Names of the tensor parameters, in order.
std::vector<std::string> inputs_of(const ir::Program& program);

Signature signature_of(const ir::Program& program);

}  // namespace tc::api
