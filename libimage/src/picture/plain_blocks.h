// MCUs of a scan, read or passed over. Included by plain_jpeg.cc in a namespace for each kind of
// machine, where Component and what it needs are known. All false where the scan is not sound.

inline bool read_mean(BitReader& reader, Component& component) {
  reader.refill();
  HuffmanTable::Token token = component.dc->look(reader);
  if (token.is_none()) token = component.dc->look_long(reader.peek(32));
  reader.drop(token.bits());
  component.mean = static_cast<int16_t>(component.mean + token.value());
  return !token.is_none();
}

inline bool skip_block(BitReader& reader, Component& component) {
  if (!read_mean(reader, component)) return false;
  const HuffmanTable& ac = *component.ac;
  for (uint32_t k = 1; k < 64;) {
    reader.refill();
    HuffmanTable::Token token = ac.look_far(reader);
    // At place 64 a block ends without saying so, and what says it belongs to the next. The usual
    // case is an end that is said, before that place.
    const uint32_t there = k + token.step();
    if (there > 64 && (there >= HuffmanTable::kEnd + 64 || !token.ends_block())) {
      token = ac.look(reader);
      if (token.is_none()) token = ac.look_long(reader.peek(32));
      if (token.is_none() || (k + token.step() > 64 && !token.ends_block())) return false;
    }
    reader.drop(token.bits());
    k += token.step();
  }
  return true;
}

inline bool read_block(BitReader& reader, Component& component, const BlockPlace& place) {
  if (!read_mean(reader, component)) return false;
  const HuffmanTable& ac = *component.ac;
  int16_t* const block = &component.waiting[64 * component.waiting_count];
  // By pieces, for which compilers use vector stores; all at once would be a slow "rep stos".
  for (size_t i = 0; i < 64; i += 16) std::memset(block + i, 0, 16 * sizeof *block);
  block[0] = static_cast<int16_t>(component.mean);
  bool only_mean = true;
  for (uint32_t k = 1; k < 64;) {
    reader.refill();
    HuffmanTable::Token token = ac.look(reader);
    if (k + token.step() > 64) {
      if (token.is_none()) token = ac.look_long(reader.peek(32));
      if (token.ends_block()) {
        reader.drop(token.bits());
        break;
      }
      if (token.is_none() || k + token.step() > 64) return false;
    }
    reader.drop(token.bits());
    k += token.step();
    block[kNatural[k - 1]] = static_cast<int16_t>(token.value());
    only_mean = false;
  }
  if (only_mean) {
    inverse_dct_mean(static_cast<int16_t>(component.mean * component.quant[0]), place);
    return true;
  }
  component.places[component.waiting_count++] = place;
  if (component.waiting_count == 2) component.transform();
  return true;
}

// COUNT MCUs. BITS: how many there are in all.
inline bool skip_mcus(BitReader& from, std::span<Component> components, uint64_t count,
                      uint64_t bits) {
  BitReader reader = from;  // a copy, which stays in registers
  for (; count > 0; --count) {
    for (Component& component : components) {
      for (uint32_t block = component.across * component.down; block > 0; --block) {
        if (!skip_block(reader, component) || reader.bits_read() > bits) return false;
      }
    }
  }
  from = reader;
  return true;
}

// COUNT MCUs beside each other, the first of which is at ROW and COLUMN of the planes, in MCUs.
inline bool read_mcus(BitReader& from, std::span<Component> components, uint32_t row,
                      uint32_t column, uint64_t count, uint64_t bits) {
  BitReader reader = from;
  for (; count > 0; --count, ++column) {
    for (Component& component : components) {
      const size_t stride = component.plane->stride;
      uint8_t* out = component.plane->data + stride * 8 * row * component.down +
                     size_t{8} * column * component.across;
      for (uint32_t y = 0; y < component.down; ++y, out += stride * 8) {
        for (uint32_t x = 0; x < component.across; ++x) {
          if (!read_block(reader, component, {out + size_t{8} * x, stride}) ||
              reader.bits_read() > bits) {
            return false;
          }
        }
      }
    }
  }
  from = reader;
  return true;
}
