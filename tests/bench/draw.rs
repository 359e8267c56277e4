//! Values drawn from an index and a field's name: the same on every machine and in any order, so that parts of the
//! input can be written side by side.

pub const FIRST_NAMES: [&str; 20] = [
    "Ann", "Bob", "Carla", "Dmitri", "Eva", "Farid", "Grete", "Hugo", "Ines", "Jonas", "Keiko", "Liam", "Mara", "Noor",
    "Olga", "Pedro", "Quinn", "Rosa", "Sven", "Tara",
];
pub const LAST_NAMES: [&str; 20] = [
    "Abbott", "Berg", "Costa", "Diaz", "Evans", "Fischer", "Garcia", "Hansen", "Ito", "Jensen", "Kowalski", "Lopez",
    "Meyer", "Novak", "Okafor", "Petrov", "Quist", "Rossi", "Silva", "Tanaka",
];
pub const CITIES: [&str; 16] = [
    "Berlin", "Porto", "Oslo", "Madrid", "Prague", "Graz", "Zagreb", "Athens", "Dublin", "Krakow", "Tallinn", "Lyon",
    "Turin", "Ghent", "Malmo", "Basel",
];
pub const COUNTRIES: [&str; 16] =
    ["DE", "PT", "NO", "ES", "CZ", "AT", "HR", "GR", "IE", "PL", "EE", "FR", "IT", "BE", "SE", "CH"];
pub const PLANS: [&str; 4] = ["free", "basic", "pro", "enterprise"];

/// What is drawn for the record of this index.
#[derive(Debug, Clone, Copy)]
pub struct Draw(pub u64);

impl Draw {
    pub fn bits(self, field: &str) -> u64 {
        // FNV-1a of the name, then the finaliser of splitmix64 over both.
        let name = field
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        let mut x = (self.0 ^ name).wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    pub fn below(self, field: &str, limit: u64) -> u64 {
        self.bits(field) % limit
    }

    pub fn one_of<T: Copy>(self, field: &str, of: &[T]) -> T {
        of[self.below(field, of.len() as u64) as usize]
    }
}
