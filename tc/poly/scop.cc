#include "tc/poly/scop.h"

#include "tc/poly/isl_ext.h"
#include "tc/support/check.h"

namespace tc::poly {

const Statement& Scop::statement(const std::string& id) const {
  for (const Statement& s : statements) {
    if (s.id == id) return s;
  }
  TC_CHECK(false, "the scop of '{}' has no statement '{}'", program->name, id);
}

std::vector<isl::set> statement_domains(const Scop& scop) {
  std::vector<isl::set> domains;
  for (const Statement& s : scop.statements) {
    isl::set domain = scop.domain.extract_set(named_space(scop.context->get(), s.id, s.indices.size()));
    if (!domain.is_empty()) domains.push_back(domain);
  }
  return domains;
}

}  // namespace tc::poly
