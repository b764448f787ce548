//! The dice: everything random of a life comes from its one seed.

use castor_base::clock::Now;

pub struct Dice {
    seed: u64,
    n: u64,
}

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self { seed, n: 0 }
    }

    /// 0 up to `sides`, without it.
    pub fn roll(&mut self, sides: usize) -> usize {
        self.n += 1;
        let rolled = Now { unix_ms: 0, seed: self.seed ^ 0x5eed }.random(self.n);
        usize::try_from(rolled >> 8).unwrap() % sides.max(1)
    }

    pub fn one_in(&mut self, sides: usize) -> bool {
        self.roll(sides) == 0
    }

    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.roll(of.len()))
    }

    /// One of the words.
    pub fn word<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.roll(of.len())]
    }

    /// By weight.
    pub fn weighed<T: Copy>(&mut self, of: &[(usize, T)]) -> T {
        let mut rolled = self.roll(of.iter().map(|(weight, _)| weight).sum());
        for (weight, it) in of {
            if rolled < *weight {
                return *it;
            }
            rolled -= weight;
        }
        of[0].1
    }
}
