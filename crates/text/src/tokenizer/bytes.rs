//! The letters that stand for bytes in byte-level vocabularies.
//!
//! GPT-2's published table: the printable characters of Latin-1 stand for themselves, the other
//! 68 bytes, in order, for the characters from U+0100 on.

/// First character that stands for a byte which is not printable.
const SHIFTED_FIRST: u32 = 0x100;

/// One past the last such character.
const SHIFTED_END: u32 = SHIFTED_FIRST + 68;

/// Both directions of the table.
#[derive(Debug)]
pub(super) struct ByteLetters {
    letters: [char; 256],
    bytes: [Option<u8>; SHIFTED_END as usize],
}

impl ByteLetters {
    pub(super) fn new() -> Self {
        let mut next = SHIFTED_FIRST;
        let letters = std::array::from_fn(|byte| {
            let byte = byte as u8;
            if matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff) {
                return char::from(byte);
            }
            let letter = char::from_u32(next).expect("68 characters from U+0100 on exist");
            next += 1;
            letter
        });
        let mut bytes = [None; SHIFTED_END as usize];
        for (byte, letter) in (0..=u8::MAX).zip(letters) {
            bytes[letter as usize] = Some(byte);
        }
        Self { letters, bytes }
    }

    /// The letter of a byte.
    pub(super) fn letter(&self, byte: u8) -> char {
        self.letters[usize::from(byte)]
    }

    /// The byte of a letter.
    pub(super) fn byte(&self, letter: char) -> Option<u8> {
        self.bytes.get(letter as usize).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_its_own_letter() {
        let table = ByteLetters::new();
        for byte in 0..=255 {
            assert_eq!(table.byte(table.letter(byte)), Some(byte));
        }
        assert_eq!(table.letter(b' '), 'Ġ');
        assert_eq!(table.letter(b'\n'), 'Ċ');
        assert_eq!(table.byte('日'), None);
    }
}
