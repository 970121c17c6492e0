//! The documents of W3 (iiBench): `{_id, dateandtime: ns, cashregisterid < 1,000, customerid <
//! 100,000, productid < 10,000, price: rand·500 + customerid}`.

use super::{Corpus, document_random, object_id};
use crate::bson;
use crate::entries::Entries;

/// The corpus of sales at cash registers.
pub struct Registers {
    /// The seed.
    pub seed: u64,
}

/// The indexes of the published workload.
pub const INDEXES: [&str; 3] = [
    r#"{"key": {"price": 1, "customerid": 1}, "name": "price"}"#,
    r#"{"key": {"cashregisterid": 1, "price": 1, "customerid": 1}, "name": "register"}"#,
    r#"{"key": {"price": 1, "dateandtime": 1, "customerid": 1}, "name": "date"}"#,
];

struct Sale {
    date: i64,
    register: i32,
    customer: i32,
    product: i32,
    price: f64,
}

impl Registers {
    fn sale(&self, number: u64) -> Sale {
        let mut random = document_random(self.seed, number);
        let register = random.below(1_000) as i32;
        let customer = random.below(100_000) as i32;
        let product = random.below(10_000) as i32;
        let part = random.below(1 << 53) as f64 / (1u64 << 53) as f64;
        Sale {
            date: 1_600_000_000_000_000_000 + number as i64 * 1_000,
            register,
            customer,
            product,
            price: part * 500.0 + f64::from(customer),
        }
    }
}

impl Corpus for Registers {
    fn write(&self, number: u64, out: &mut Vec<u8>) {
        let sale = self.sale(number);
        bson::document(out, |writer| {
            writer.object_id("_id", object_id(number));
            writer.int64("dateandtime", sale.date);
            writer.int32("cashregisterid", sale.register);
            writer.int32("customerid", sale.customer);
            writer.int32("productid", sale.product);
            writer.double("price", sale.price);
        });
    }
}

/// The entries of the three indexes {price, customerid}, {cashregisterid, price, customerid} and
/// {price, dateandtime, customerid}. No value is negative, so big-endian bytes are in order.
impl Entries for Registers {
    fn tables(&self) -> u8 {
        3
    }

    fn each(&self, number: u64, put: &mut dyn FnMut(u8, &[u8])) {
        let sale = self.sale(number);
        let price = &sale.price.to_bits().to_be_bytes()[..];
        let customer = &sale.customer.to_be_bytes()[..];
        let (date, register) = (
            &sale.date.to_be_bytes()[..],
            &sale.register.to_be_bytes()[..],
        );
        put(0, &[price, customer].concat());
        put(1, &[register, price, customer].concat());
        put(2, &[price, date, customer].concat());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bson::Document;

    #[test]
    fn prices_are_derived_from_customers() {
        for number in 0..1_000 {
            let mut bytes = Vec::new();
            Registers { seed: 1 }.write(number, &mut bytes);
            let read = Document::from_prefix(&bytes).unwrap();
            let of = |name: &str| read.number(name).unwrap();
            let more = of("price") - of("customerid");
            assert!((0.0..500.0).contains(&more), "{more}");
            assert!(of("cashregisterid") < 1e3 && of("productid") < 1e4);
        }
    }

    #[test]
    fn documents_have_an_entry_per_index() {
        let mut lengths = Vec::new();
        Registers { seed: 1 }.each(5, &mut |table, key| lengths.push((table, key.len())));
        assert_eq!(lengths, [(0, 12), (1, 16), (2, 20)]);
    }
}
