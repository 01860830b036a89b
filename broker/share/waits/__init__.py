"""Times before which a share group does not get a record: back-off between deliveries."""
