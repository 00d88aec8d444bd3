//! Stands in for whoever rents out nodes. The name of the image decides what happens, so that
//! each path of the machine can be walked on purpose.

/// How the nodes of a pool are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    Up,
    Starting,
    Withdrawn,
}

/// Looks at the nodes for the n-th time, from 1.
pub(crate) fn health(image: &str, look: u32) -> Health {
    if image.contains("withdrawn") {
        Health::Withdrawn
    } else if image.contains("never-starts") || (image.contains("slow-start") && look < 3) {
        Health::Starting
    } else {
        Health::Up
    }
}

#[cfg(test)]
mod tests {
    use super::{Health, health};

    #[test]
    fn the_image_decides() {
        assert_eq!(health("train", 1), Health::Up);
        assert_eq!(health("train-slow-start", 2), Health::Starting);
        assert_eq!(health("train-slow-start", 3), Health::Up);
        assert_eq!(health("train-never-starts", 9), Health::Starting);
        assert_eq!(health("train-withdrawn", 1), Health::Withdrawn);
    }
}
