// MCUs of a scan, read or passed over. Included by plain_jpeg.cc in a namespace for each kind of
// machine, where Component and what it needs are known. All false where the scan is not sound.

// Leaves at least kMaxTokenBits in the reader.
inline bool read_mean(BitReader& reader, Component& component) {
  reader.refill();
  HuffmanTable::Token token = component.dc->look(reader);
  if (token.is_none()) {
    token = component.dc->look_long(reader.peek(32));
    if (token.is_none()) return false;
  }
  component.mean =
      static_cast<int16_t>(component.mean + reader.value(token.bits(), token.last_size()));
  reader.drop(token.bits());
  if (token.bits() > 56 - HuffmanTable::kMaxTokenBits) reader.refill();
  return true;
}

inline bool skip_block(BitReader& reader, Component& component) {
  if (!read_mean(reader, component)) return false;
  const HuffmanTable& ac = *component.ac;
  for (uint32_t k = 1; k < 64;) {
    HuffmanTable::Run run = ac.look_far(reader);
    if (run.is_within(k)) {
      reader.drop(run.bits());
      reader.refill();
      k += run.step();
      if (k >= 64) break;
      run = ac.look_far(reader);
      if (run.is_within(k)) {
        reader.drop(run.bits());  // and kMaxTokenBits are left
        k += run.step();
        continue;
      }
    }
    reader.refill();
    HuffmanTable::Token token = ac.look(reader);
    if (token.is_none()) token = ac.look_long(reader.peek(32));
    if (token.is_none()) return false;
    reader.drop(token.first_bits());
    reader.refill();
    if (token.first_step() == 0) return true;
    k += token.first_step();
    if (k > 64) return false;
  }
  return true;
}

// The values of TOKEN, to their places behind K. Where there is only one it is stored twice.
inline void take_values(BitReader& reader, HuffmanTable::Token token, uint32_t& k, int16_t* block) {
  block[kNatural[k + token.first_step() - 1]] =
      static_cast<int16_t>(reader.value(token.first_bits(), token.first_size()));
  k += token.step();
  block[kNatural[k - 1]] = static_cast<int16_t>(reader.value(token.bits(), token.last_size()));
  reader.drop(token.bits());
}

// Reads a block's values behind its mean. Returns the place behind the last one, 1 where there is
// none, or 0 where the block is not sound.
inline uint32_t read_values(BitReader& reader, const HuffmanTable& ac, int16_t* block) {
  for (uint32_t k = 1;;) {
    HuffmanTable::Token token = ac.look(reader);
    if (k + token.step() <= 64) {
      take_values(reader, token, k, block);
      reader.refill();
      token = ac.look(reader);
      if (k + token.step() <= 64) {
        take_values(reader, token, k, block);  // and kMaxTokenBits are left
        continue;
      }
    }
    // Near the end: one code after the other.
    if (k == 64) return k;
    reader.refill();
    if (token.is_none()) token = ac.look_long(reader.peek(32));
    if (token.is_none()) return 0;
    if (token.first_step() > 0) {
      if (k + token.first_step() > 64) return 0;
      k += token.first_step();
      block[kNatural[k - 1]] =
          static_cast<int16_t>(reader.value(token.first_bits(), token.first_size()));
      if (k == 64 || !token.ends_block()) {
        reader.drop(token.first_bits());
        reader.refill();
        continue;
      }
    }
    reader.drop(token.bits());
    return k;
  }
}

inline bool read_block(BitReader& reader, Component& component, const BlockPlace& place) {
  if (!read_mean(reader, component)) return false;
  int16_t* const block = &component.waiting[64 * component.waiting_count];
  // By pieces, for which compilers use vector stores; all at once would be a slow "rep stos".
  for (size_t i = 0; i < 64; i += 16) std::memset(block + i, 0, 16 * sizeof *block);
  block[0] = static_cast<int16_t>(component.mean);
  const uint32_t behind = read_values(reader, *component.ac, block);
  if (behind == 0) return false;
  if (behind == 1) {
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
