//! Reorders elements in place.

/// Moves the element with the number `numbers[n]` to place `n`, for each `n`. `numbers` is a
/// permutation, whose cycles are followed one after the other.
pub fn arrange<T: Copy>(elements: &mut [T], mut numbers: Vec<u32>) {
    debug_assert_eq!(elements.len(), numbers.len());
    for start in 0..elements.len() {
        let first = elements[start];
        let mut place = start;
        loop {
            // A place whose number is its own is done.
            let source = std::mem::replace(&mut numbers[place], place as u32) as usize;
            if source == start || source == place {
                elements[place] = first;
                break;
            }
            elements[place] = elements[source];
            place = source;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_arranged_by_their_numbers() {
        let check = |numbers: &[u32]| {
            let mut elements: Vec<u32> = (0..numbers.len() as u32).map(|it| it + 100).collect();
            arrange(&mut elements, numbers.to_vec());
            let expected: Vec<u32> = numbers.iter().map(|number| number + 100).collect();
            assert_eq!(elements, expected);
        };
        check(&[]);
        check(&[0]);
        check(&[0, 1, 2]);
        check(&[1, 0]);
        check(&[2, 0, 1]);
        check(&[3, 1, 0, 2, 5, 4]);
        let scattered: Vec<u32> = (0..1_000).map(|number| number * 7 % 1_000).collect();
        check(&scattered);
    }
}
