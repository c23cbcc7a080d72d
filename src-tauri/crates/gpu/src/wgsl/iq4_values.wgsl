// The values of IQ4_NL and IQ4_XS, as signed bytes, for the places 0 to 15 in the bytes of `places`.
fn iq4_values$M(places: vec4<u32>) -> vec4<u32> {
  var values = vec4<u32>(0u);
  for (var shift = 0u; shift < 32u; shift += 8u) {
    let place = places >> vec4<u32>(shift);
    let upper = (place & vec4<u32>(4u)) != vec4<u32>(0u);
    // -127 -104 -83 -65, -49 -35 -22 -10, 1 13 25 38, 53 69 89 113.
    let negative = select(vec4<u32>(0xbfad9881u), vec4<u32>(0xf6eaddcfu), upper);
    let positive = select(vec4<u32>(0x26190d01u), vec4<u32>(0x71594535u), upper);
    let four = select(negative, positive, (place & vec4<u32>(8u)) != vec4<u32>(0u));
    let value = (four >> ((place & vec4<u32>(3u)) * 8u)) & vec4<u32>(255u);
    values |= value << vec4<u32>(shift);
  }
  return values;
}
