" Highlighting of TC texts. Written by editors/generate, from the compiler's own tables.
if exists("b:current_syntax")
  finish
endif

syntax case match
syntax match tcOperator /\%(&&\|\*=!\|+=!\|||\|\*=\|+=\|!=\|<=\|==\|>=\|\*\|+\|-\|?\|!\|%\|\/\|:\|<\|=\|>\)/
highlight default link tcOperator Operator
syntax match tcNumber /\%(\%([0-9]\)\+\%(\.\)\=\%([0-9]\)*\|\.\%([0-9]\)\+\)\%([eE]\%([+\-]\)\=\%([0-9]\)\+\)\=/
highlight default link tcNumber Number
syntax match tcName /\%(\<\|\>\)[A-Za-z_]\%([A-Za-z_0-9]\)*/
syntax match tcIntrinsic /\%(\<\|\>\)\%(cyl_bessel_i0f\|cyl_bessel_i1f\|cyl_bessel_i0\|cyl_bessel_i1\|bitwise_and\|bitwise_not\|bitwise_xor\|normcdfinvf\|shift_right\|bitwise_or\|nearbyintf\|nextafterf\|normcdfinv\|remainderf\|shift_left\|copysignf\|nearbyint\|nextafter\|remainder\|copysign\|erfcinvf\|fdividef\|isfinite\|llroundf\|normcdff\|popcount\|rnorm3df\|rnorm4df\|scalblnf\|erfcinv\|erfinvf\|fdivide\|lgammaf\|llrintf\|llround\|lroundf\|norm3df\|norm4df\|normcdf\|rhypotf\|rnorm3d\|rnorm4d\|scalbln\|scalbnf\|sigmoid\|signbit\|tgammaf\|acoshf\|asinhf\|atan2f\|atanhf\|cospif\|erfcxf\|erfinv\|exp10f\|expm1f\|floorf\|hypotf\|ilogbf\|ldexpf\|lgamma\|llrint\|log10f\|log1pf\|lrintf\|lround\|norm3d\|norm4d\|rcbrtf\|rhypot\|roundf\|rsqrtf\|scalbn\|select\|sinpif\|tgamma\|truncf\|acosf\|acosh\|asinf\|asinh\|atan2\|atanf\|atanh\|cbrtf\|ceilf\|clamp\|coshf\|cospi\|erfcf\|erfcx\|exp10\|exp2f\|expm1\|fabsf\|fdimf\|floor\|fmaxf\|fminf\|fmodf\|hypot\|ilogb\|isinf\|isnan\|ldexp\|log10\|log1p\|log2f\|logbf\|lrint\|rcbrt\|rintf\|round\|rsqrt\|sinhf\|sinpi\|sqrtf\|tanhf\|trunc\|acos\|asin\|atan\|cbrt\|ceil\|cosf\|cosh\|erfc\|erff\|exp2\|expf\|fabs\|fdim\|fmaf\|fmax\|fmin\|fmod\|log2\|logb\|logf\|powf\|relu\|rint\|sign\|sinf\|sinh\|sqrt\|tanf\|tanh\|tf32\|abs\|cos\|erf\|exp\|fma\|j0f\|j1f\|jnf\|log\|max\|min\|pow\|sin\|tan\|y0f\|y1f\|ynf\|j0\|j1\|jn\|y0\|y1\|yn\)\%(\<\|\>\)\%(\%(\s\)*(\)\@=/
highlight default link tcIntrinsic Function
syntax match tcConstant /\%(\<\|\>\)\%(inf\|nan\|pi\)\%(\<\|\>\)/
highlight default link tcConstant Constant
syntax match tcType /\%(\<\|\>\)\%(float8_e4m3\|float8_e5m2\|bfloat16\|float16\|float32\|float64\|double\|uint16\|uint32\|uint64\|float\|int16\|int32\|int64\|uint8\|bool\|half\|int8\|uint\|int\)\%(\<\|\>\)/
highlight default link tcType Type
syntax match tcRestriction /\%(:\)\@<=\%(\s\)*\zsinteger\ze\%(\<\|\>\)\%(\%(\s\)*[,>]\)\@=/
highlight default link tcRestriction Type
syntax match tcRange /\%([A-Za-z_0-9]\s\)\@<=\%(\s\)*\zsin\ze\%(\<\|\>\)\%(\%(\s\)\+[A-Za-z_0-9(\-]\)\@=/
highlight default link tcRange Keyword
syntax match tcClause /\%(\<\|\>\)\%(where\%(\<\|\>\)\%(\%(\s\)*[(,)=]\)\@!\|exists\%(\<\|\>\)\%(\%(\s\)*[,)=]\)\@!\)/
highlight default link tcClause Keyword
syntax match tcAssignment /\%(\%(\<\|\>\)m\%(in\|ax\)\|[+*]\)=\%(!\)\=\%(=\)\@!/
highlight default link tcAssignment Operator
syntax match tcArrow /\%(->\|→\)/
highlight default link tcArrow Operator
syntax match tcDef /\%(\<\|\>\)def\%(\<\|\>\)\%(\%(\s\)\+[A-Za-z_]\)\@=/
highlight default link tcDef Keyword
syntax match tcDefName /\%(def\s\)\@<=\%(\s\)*\zs[A-Za-z_]\%([A-Za-z_0-9]\)*\ze\%(\%(\s\)*[(<]\)\@=/
highlight default link tcDefName Function
syntax match tcComment /#\%(.\)*$/
highlight default link tcComment Comment

let b:current_syntax = "tc"
