-- Everything as it came, so that the layers above can be made anew from it at any time.
CREATE OR REFRESH STREAMING TABLE bronze.orders
COMMENT 'Orders as the shop delivered them'
TBLPROPERTIES ('pipelines.reset.allowed' = 'false')  -- a full refresh leaves this table alone
AS SELECT *, _metadata.file_name AS source_file
FROM STREAM read_files('/shop/orders', format => 'json', maxFilesPerTrigger => 3);
