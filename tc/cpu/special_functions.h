#pragma once

namespace tc::cpu::special {

/// Functions that the C library lacks, accurate to a few units of long double's last place.
long double cospi(long double x);
long double sinpi(long double x);
long double rcbrt(long double x);
long double sigmoid(long double x);
long double log_gamma(long double x);
long double erfcx(long double x);
long double erfinv(long double x);
long double erfcinv(long double x);
long double normcdf(long double x);
long double normcdfinv(long double x);
long double bessel_i0(long double x);
long double bessel_i1(long double x);

}  // namespace tc::cpu::special
