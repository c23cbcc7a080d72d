// Activations `$X`, in groups of 32: int8 with a scale for each half and the sum of the values, halves, or floats.
#if $X_DOT4
#if $X_STAGED
var<workgroup> $X_bytes: array<vec4<u32>, GROUPS * 2u>;
var<workgroup> $X_scales: array<vec4<f32>, GROUPS>;
#else
@group(0) @binding(#) var<storage, $ACCESS> $X_bytes: array<vec4<u32>>;
@group(0) @binding(#) var<storage, $ACCESS> $X_scales: array<vec4<f32>>;
#endif
#elif $X_HALF
@group(0) @binding(#) var<storage, $ACCESS> $X_halves: array<vec4<u32>>;
#else
#if $X_STAGED
var<workgroup> $X_floats: array<vec4<f32>, GROUPS * 8u>;
#else
@group(0) @binding(#) var<storage, $ACCESS> $X_floats: array<vec4<f32>>;
#endif
#endif
