#include "tc/poly/alignment.h"

#include <map>
#include <string>

#include "tc/poly/isl_ext.h"

namespace tc::poly {
namespace {

using Row = std::vector<__int128>;

/// Whether `wanted` is a rational combination of `rows`, which are reduced in place to echelon form on the way.
class RowSpace {
 public:
  explicit RowSpace(const std::vector<std::vector<int64_t>>& rows) {
    for (const std::vector<int64_t>& row : rows) add(Row(row.begin(), row.end()));
  }

  bool contains(Row wanted) const {
    for (const auto& [pivot, row] : echelon_) eliminate(wanted, pivot, row);
    for (__int128 entry : wanted) {
      if (entry != 0) return false;
    }
    return true;
  }

 private:
  static __int128 gcd(__int128 a, __int128 b) { return b == 0 ? (a < 0 ? -a : a) : gcd(b, a % b); }

  static void eliminate(Row& row, size_t pivot, const Row& by) {
    if (row[pivot] == 0) return;
    const __int128 common = gcd(row[pivot], by[pivot]);
    const __int128 scale = by[pivot] / common, times = row[pivot] / common;
    __int128 divisor = 0;
    for (size_t c = 0; c < row.size(); ++c) {
      row[c] = row[c] * scale - by[c] * times;
      divisor = gcd(divisor, row[c]);
    }
    if (divisor > 1) {
      for (__int128& entry : row) entry /= divisor;
    }
  }

  void add(Row row) {
    for (const auto& [pivot, by] : echelon_) eliminate(row, pivot, by);
    for (size_t c = 0; c < row.size(); ++c) {
      if (row[c] == 0) continue;
      for (auto& [pivot, other] : echelon_) eliminate(other, c, row);
      echelon_.emplace_back(c, row);
      return;
    }
  }

  std::vector<std::pair<size_t, Row>> echelon_;
};

int64_t extent_of(const isl::set& domain, int dimension) {
  const isl::val low = domain.dim_min_val(dimension), high = domain.dim_max_val(dimension);
  if (!low.is_int() || !high.is_int()) return INT64_MAX;  // a parameter decides
  return to_int64(high.sub(low)) + 1;
}

}  // namespace

Alignment::Alignment(const Scop& scop) : domains_(statement_domains(scop)) {
  const size_t n = domains_.size();
  pairs_.assign(n, std::vector<Pair>(n));
  shared_.assign(n, std::vector<Pair>(n));
  permutable_.assign(n, true);
  for (const isl::set& domain : domains_) {
    std::vector<int64_t>& extents = extents_.emplace_back();
    for (unsigned d = 0; d < domain.tuple_dim(); ++d) extents.push_back(extent_of(domain, d));
    coincident_.emplace_back(domain.tuple_dim(), true);
  }
  read_dependences(scop);
  read_sharing(scop);
}

void Alignment::intersect(Pair& pair, const isl::map& relation) {
  const size_t inputs = relation.domain_tuple_dim(), outputs = relation.range_tuple_dim();
  const std::vector<std::vector<int64_t>> equalities = implied_equalities(relation);
  const RowSpace implied(equalities);
  if (!pair.exists) pair.equal.assign(inputs, std::vector<bool>(outputs, true));
  pair.exists = true;
  for (size_t i = 0; i < inputs; ++i) {
    for (size_t o = 0; o < outputs; ++o) {
      if (!pair.equal[i][o]) continue;
      Row wanted(equalities.empty() ? inputs + outputs + 1 : equalities.front().size());
      wanted[i] = 1;
      wanted[inputs + o] = -1;
      pair.equal[i][o] = implied.contains(wanted);
    }
  }
}

void Alignment::read_dependences(const Scop& scop) {
  std::map<std::string, size_t> numbers;
  for (size_t s = 0; s < domains_.size(); ++s) numbers[tuple_name(domains_[s])] = s;
  for (const isl::map& map : maps_of(scop.dependences.ordered())) {
    const size_t source = numbers.at(domain_name(map)), sink = numbers.at(range_name(map));
    intersect(pairs_[source][sink], map);
    if (source == sink) permutable_[source] = false;
  }
  for (const isl::map& map : maps_of(scop.dependences.reduction)) {
    const size_t s = numbers.at(domain_name(map));
    intersect(pairs_[s][s], map);
  }
  for (size_t s = 0; s < domains_.size(); ++s) {
    Pair& self = pairs_[s][s];
    if (!self.exists) continue;
    for (size_t d = 0; d < extents_[s].size(); ++d) coincident_[s][d] = self.equal[d][d];
    self.exists = false;
  }
}

void Alignment::read_sharing(const Scop& scop) {
  std::map<std::string, size_t> numbers;
  for (size_t s = 0; s < domains_.size(); ++s) numbers[tuple_name(domains_[s])] = s;
  for (size_t i = 0; i < scop.accesses.size(); ++i) {
    const Access& a = scop.accesses[i];
    if (a.kind != Access::Kind::kRead || !a.exact) continue;
    for (size_t j = i + 1; j < scop.accesses.size(); ++j) {
      const Access& b = scop.accesses[j];
      if (b.kind != Access::Kind::kRead || !b.exact || a.tensor != b.tensor || a.statement == b.statement) continue;
      const size_t s = numbers.at(a.statement), t = numbers.at(b.statement);
      if (depends(s, t) || depends(t, s)) continue;
      const isl::map common = a.relation.apply_range(b.relation.reverse());
      if (common.is_empty()) continue;
      intersect(shared_[s][t], common);
      shared_[t][s].exists = true;
    }
  }
}

bool Alignment::equal(size_t a, int a_dimension, size_t b, int b_dimension) const {
  if (pairs_[a][b].exists && !pairs_[a][b].equal[a_dimension][b_dimension]) return false;
  return !pairs_[b][a].exists || pairs_[b][a].equal[b_dimension][a_dimension];
}

bool Alignment::equal_where_shared(size_t a, int a_dimension, size_t b, int b_dimension) const {
  if (a > b) return equal_where_shared(b, b_dimension, a, a_dimension);
  return shared_[a][b].exists && shared_[a][b].equal[a_dimension][b_dimension];
}

}  // namespace tc::poly
