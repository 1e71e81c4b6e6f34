#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tc/lang/ast.h"
#include "tc/lang/report.h"
#include "tc/support/result.h"

/// T7: a generic def has type variables; an instance of it has types in their place, and is analysed like any other
/// def.
namespace tc::lang {

/// The type of each variable, by name.
using TypeArguments = std::map<std::string, ScalarType>;

inline bool is_generic(const Definition& definition) { return !definition.type_variables.empty(); }

/// Whether a variable may have a type.
bool allows(const TypeVariable& variable, ScalarType type);

/// "softmax<float16>", the types in the order of the variables.
std::string instance_name(const Definition& generic, const TypeArguments& types);

/// The types that the name of an instance says. Nothing for a name that is not one of this def's.
std::optional<TypeArguments> types_of_instance(const Definition& generic, std::string_view name);

/// The def with types in place of its variables, called by the name of the instance.
Definition instantiate(const Definition& generic, const TypeArguments& types);

/// The instance alone, as a file.
File instance_file(const File& file, const Definition& generic, const TypeArguments& types);

/// The same by name. Nothing where no generic def of the file has an instance of that name.
std::optional<File> file_of_instance(const File& file, std::string_view name);

/// Instances to try where nobody says which: every allowed type of a variable, float32 first, combined with those of
/// the others. Where these are 64 or more, every type of each variable alone is first, and the rest is cut at 64.
std::vector<TypeArguments> instances_of(const Definition& generic);

/// The given types and those in the name of an instance. Errors: no instance of the def; two types for one variable.
Result<TypeArguments> with_types_of_name(const Definition& generic, std::string_view name, TypeArguments given);

/// The types among those given for a file that are a def's. They are given by variable, "T", for all defs that have it,
/// or by def and variable, "f.T", which takes precedence. Errors: a def or a variable that the file does not have, with
/// the nearest; a def that is not generic.
Result<TypeArguments> types_given_for(const File& file, const Definition& generic, const TypeArguments& given);

/// The types that a call decides: `given` by variable, `tensors` by the name of a parameter or result. Errors: a
/// variable that the def does not have; two types for one; a type that the variable does not allow; no type.
Result<TypeArguments> decide_types(const Definition& generic, const std::map<std::string, ScalarType>& tensors,
                                   const TypeArguments& given);

/// C9 and T7: reports variables that no tensor can decide, and those that are called like an intrinsic.
void check_type_variables(const Definition& generic, Report& report);

/// The same error, with a note that says in which instance it is, if the file is one.
Error in_instance(const Error& error, const File& file);

}  // namespace tc::lang
