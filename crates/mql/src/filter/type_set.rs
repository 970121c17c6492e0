//! The operand of `$type`: a set of BSON types.

use windrow_document::{Type, ValueRef};

use crate::Error;

/// A set of BSON types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TypeSet {
    bits: u32,
    /// `true` if the operand contains "number", which explain then prints.
    pub number: bool,
}

impl TypeSet {
    fn bit(type_of: Type) -> u32 {
        match type_of {
            Type::MinKey => 1 << 30,
            Type::MaxKey => 1 << 31,
            other => 1 << (other as u8),
        }
    }

    /// Parses a type or a list of types.
    pub(super) fn parse(operand: ValueRef<'_>) -> Result<TypeSet, Error> {
        let mut types = TypeSet::default();
        match operand {
            ValueRef::Array(list) => list.iter().try_for_each(|one| types.add(one))?,
            one => types.add(one)?,
        }
        Ok(types)
    }

    fn add(&mut self, operand: ValueRef<'_>) -> Result<(), Error> {
        match operand {
            ValueRef::String("number") => self.insert_numbers(),
            ValueRef::String(name) => {
                let type_of = Type::from_name(name)
                    .ok_or_else(|| Error::bad_value(format!("Unknown type name alias: {name}")))?;
                self.insert(type_of);
            }
            number if number.is_number() => self.insert(type_of_number(number)?),
            _ => {
                return Err(Error::type_mismatch(
                    "type must be represented as a number or a string",
                ));
            }
        }
        Ok(())
    }

    /// Adds a type.
    pub fn insert(&mut self, type_of: Type) {
        self.bits |= TypeSet::bit(type_of);
    }

    /// Adds all number types, as the alias "number".
    pub fn insert_numbers(&mut self) {
        self.number = true;
        Type::ALL
            .into_iter()
            .filter(|type_of| type_of.is_number())
            .for_each(|type_of| self.insert(type_of));
    }

    /// Returns `true` if the set contains the type.
    pub fn contains(self, type_of: Type) -> bool {
        self.bits & TypeSet::bit(type_of) != 0
    }

    /// Returns `true` if the set has no type.
    pub fn is_empty(self) -> bool {
        self.bits == 0
    }

    /// Returns the types, ascending by their numbers in BSON.
    pub fn iter(self) -> impl Iterator<Item = Type> {
        Type::ALL
            .into_iter()
            .filter(move |type_of| self.contains(*type_of))
    }
}

fn type_of_number(number: ValueRef<'_>) -> Result<Type, Error> {
    let code = number.as_whole();
    Type::ALL
        .into_iter()
        .find(|type_of| code == Some(i64::from(type_of.number())))
        .ok_or_else(|| Error::bad_value(format!("Invalid numerical type code: {number}")))
}
